package browser

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// tab is one page of a browser, with its requests and complaints.
type tab struct {
	ctx context.Context //nolint:containedctx // how chromedp names a tab

	mu         sync.Mutex // guards what follows
	hosts      []string
	asked      []string
	complaints []string
}

// openTab starts a browser that ends with the test and reaches nothing but this
// machine.
func openTab(t *testing.T) *tab {
	t.Helper()
	opts := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(chromium(t)), chromedp.NoSandbox,
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"), chromedp.WindowSize(1300, 1600))
	allocated, endAllocated := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), opts...)
	ctx, end := chromedp.NewContext(allocated)
	ctx, cancel := context.WithTimeout(ctx, 6*time.Minute)
	t.Cleanup(func() { cancel(); end(); endAllocated() })
	b := &tab{ctx: ctx}
	err := chromedp.Listen(ctx, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			if u, err := url.Parse(e.Request.URL); err == nil && u.Scheme != "data" && u.Scheme != "blob" {
				b.hosts = append(b.hosts, u.Host)
				b.asked = append(b.asked, e.Request.Method+" "+u.Path)
			}
		case *log.EventEntryAdded: // violations of the content security policy are among them
			if e.Entry.Level == log.EntryLevelError && e.Entry.Source != log.EntrySourceNetwork {
				b.complaints = append(b.complaints, e.Entry.Text)
			}
		case *runtime.EventExceptionThrown:
			b.complaints = append(b.complaints, e.ExceptionDetails.Text)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// do acts as a reader would.
func (b *tab) do(t *testing.T, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		t.Fatalf("%v; the page complained of %q", err, b.complaints)
	}
}

// eval runs a script in the page.
func eval[T any](t *testing.T, b *tab, script string) T {
	t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](script))
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return v
}

// until waits for a script's condition.
func (b *tab) until(t *testing.T, condition string) {
	t.Helper()
	if err := b.poll(condition, time.Minute); err != nil {
		shown, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText.slice(0, 2000)`))
		t.Logf("the page shows:\n%s", shown)
		b.mu.Lock()
		defer b.mu.Unlock()
		t.Fatalf("%s: %v; the page complained of %q, and asked last %q", condition, err, b.complaints, b.asked[max(0, len(b.asked)-8):])
	}
}

// untilOr waits like until, and runs the script again every ten seconds: a page that draws itself anew while it opens may lose a click.
func (b *tab) untilOr(t *testing.T, condition, again string) {
	t.Helper()
	for range 5 {
		if b.poll(condition, 10*time.Second) == nil {
			return
		}
		eval[any](t, b, again)
	}
	b.until(t, condition)
}

// poll evaluates a condition of a page that is parsed until it holds, for the given time at most. The interval is kept here and not in the page
// (as chromedp.Poll does), because timers and animation frames of a page do not fire while its scripts are switched off.
func (b *tab) poll(condition string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(b.ctx, limit)
	defer cancel()
	interval := time.NewTicker(20 * time.Millisecond)
	defer interval.Stop()
	for {
		holds, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`document.readyState !== "loading" && !!(`+condition+`)`))
		if holds {
			return nil
		}
		if err != nil && !isNavigation(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-interval.C:
		}
	}
}

// isNavigation reports whether the page that a script ran in gave way to another:
// the protocol has one code for it, and a wording for each moment.
func isNavigation(err error) bool {
	var fault *cdproto.Error
	return errors.As(err, &fault) && fault.Code == -32000
}

// useKey types a key into the page and sends the form.
func (b *tab) useKey(t *testing.T, key string) {
	t.Helper()
	eval[any](t, b, `document.querySelector("#key").value = ""`)
	b.do(t, chromedp.SendKeys(chromedp.CSS("#key"), key+"\r"))
}

// The reference shows each API, and calls tried from it are made under the
// reader's key. It asks this gateway only, and its policy lets nothing else run.
func TestTheReferenceInABrowser(t *testing.T) {
	s := serve(t)
	b := openTab(t)
	b.do(t, chromedp.Navigate(s.URL+"/docs"))
	b.until(t, `document.querySelectorAll("#v2 .opblock").length >= 50`)

	// A wrong key is refused, in words; the right one shows its permissions.
	b.useKey(t, "wrong")
	b.until(t, `!document.querySelector("#notice").hidden && document.querySelector("#access").hidden`)
	b.useKey(t, "key_of_nobody")
	b.until(t, `!document.querySelector("#access").hidden && [...document.querySelectorAll("#v2 .opblock-put")].some(e => e.textContent.includes("refused for your key"))`)
	if got, want := eval[string](t, b, `document.querySelector("#access summary").textContent`), "Your access: organisation acme, key a, roles operator"; got != want {
		t.Errorf("the page says %q, want %q", got, want)
	}
	for table, want := range map[string]string{"limits": "key:a", "budgets": "per_hour", "policies": "gpu_count", "prices": "L4"} {
		if got := eval[string](t, b, `document.querySelector("#`+table+`").textContent`); !strings.Contains(got, want) {
			t.Errorf("the table of %s lacks %q:\n%s", table, want, got)
		}
	}

	if n := eval[int](t, b, `[...document.querySelectorAll("#prices tr")].filter(e => e.textContent.includes("gpu_allow_list") && e.querySelector("del")).length`); n < 10 {
		t.Errorf("%d GPUs are marked as refused, want most of them", n)
	}

	// v2: a call tried from the page.
	const list = `document.querySelector("#v2 #operations-Pods-listPods")`
	eval[any](t, b, list+`.querySelector(".opblock-summary-control").click()`)
	b.do(t, chromedp.Click(chromedp.CSS("#v2 #operations-Pods-listPods .execute")))
	b.until(t, `(`+list+`.querySelector(".live-responses-table tbody .response-col_status")?.textContent ?? "").startsWith("200")`)

	// The offered examples pass as they are.
	const create = `document.querySelector("#v2 #operations-Pods-createPod")`
	eval[any](t, b, create+`.querySelector(".opblock-summary-control").click()`)
	b.do(t, chromedp.Click(chromedp.CSS("#v2 #operations-Pods-createPod .execute")))
	b.until(t, `(`+create+`.querySelector(".live-responses-table tbody .response-col_status")?.textContent ?? "").startsWith("201")`)

	eval[any](t, b, `document.querySelector("#tab-run").click()`)
	b.until(t, `document.querySelectorAll("#run .opblock").length >= 10`)

	eval[any](t, b, `document.querySelector("#tab-v1").click()`)
	b.until(t, `document.querySelectorAll("#v1 .opblock").length >= 30`)

	// GraphQL, which learns the schema by introspection.
	eval[any](t, b, `document.querySelector("#tab-graphql").click()`)
	b.until(t, `document.querySelector(".graphiql-execute-button") !== null`)
	const told = `(document.querySelector(".result-window")?.textContent ?? "").includes('"myself"')`
	eval[any](t, b, `document.querySelector(".graphiql-execute-button").click()`)
	b.untilOr(t, told, `document.querySelector(".graphiql-execute-button").click()`)

	b.mu.Lock()
	defer b.mu.Unlock()
	own := strings.TrimPrefix(s.URL, "http://")
	if i := slices.IndexFunc(b.hosts, func(h string) bool { return h != own }); i >= 0 || len(b.hosts) < 10 {
		t.Errorf("the page asked %q, want %s only", b.hosts, own)
	}
	if len(b.complaints) > 0 {
		t.Errorf("the page complained: %q", b.complaints)
	}
}
