package webhook

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/config/egress"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
)

var secret = strictyaml.NewSecret("a secret of twenty-four bytes")

// The answer of a receiver decides whether it is asked again, and no redirect leads
// elsewhere.
func TestSend(t *testing.T) {
	for _, tt := range []struct {
		name    string
		answers []int // one after the other; the last one stays
		asked   int
		fault   string
	}{
		{"taken", []int{204}, 1, ""},
		{"taken after trouble", []int{503, 429, 408, 200}, 4, ""},
		{"in trouble for good", []int{500}, tries, "receiver responded with status 500"},
		{"refused", []int{400}, 1, "receiver responded with status 400"},
		{"led elsewhere", []int{307}, 1, "receiver responded with status 307"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked := 0
			receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked++
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(tt.answers[min(asked, len(tt.answers))-1])
			}))
			defer receiver.Close()
			s := newSender(t, receiver.URL, "127.0.0.0/8")
			err := s.Send(t.Context(), "1", "test", time.Unix(0, 0), nil)
			if got := faultOf(err); !strings.HasSuffix(got, tt.fault) || (got == "") != (tt.fault == "") || asked != tt.asked {
				t.Errorf("Send: %q after %d attempts, want %q after %d", got, asked, tt.fault, tt.asked)
			}
		})
	}
}

// A private address is asked only where it is listed, however it is spelled.
func TestPrivateAddresses(t *testing.T) {
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the receiver was asked") }))
	defer receiver.Close()
	_, port, _ := strings.Cut(strings.TrimPrefix(receiver.URL, "http://"), ":")
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "0x7f000001"} {
		if err := newSender(t, "http://"+host+":"+port, "10.0.0.0/8").Send(t.Context(), "1", "test", time.Unix(0, 0), nil); err == nil {
			t.Errorf("%s: delivered", host)
		}
	}
}

// A receiver gets an event as it is, or as sentences with links, in which no name of a
// resource mentions or links anything.
func TestFormats(t *testing.T) {
	data := Message{
		Data: struct {
			Org  string `json:"org"`
			Name string `json:"name"`
			Used int    `json:"used"`
		}{"acme", `a <!channel> & "b"`, 3},
		Text: `The pod a <!channel> & "b" is idle.`, Links: []Link{{"Keep <it>", "https://gw.example/keep?a=1&b=>|"}},
	}
	for format, want := range map[Format]string{
		FormatSlack: `{"text":"The pod a &lt;!channel&gt; &amp; \"b\" is idle. <https://gw.example/keep?a=1&amp;b=%3E%7C|Keep %3Cit%3E>"}`,
		"":          `{"type":"resource.idle","timestamp":"1970-01-01T00:00:00Z","data":{"org":"acme","name":"a <!channel> & \"b\"","used":3}}`,
	} {
		var got any
		receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err == nil {
				err = json.Unmarshal(body, &got)
			}
			if err != nil {
				t.Error(err)
			}
		}))
		s := newSender(t, receiver.URL, "127.0.0.0/8")
		s.format = format
		err := s.Send(t.Context(), "1", "resource.idle", time.Unix(0, 0).UTC(), data)
		receiver.Close()
		var wanted any
		if bad := json.Unmarshal([]byte(want), &wanted); bad != nil {
			t.Fatal(bad)
		}
		if diff := cmp.Diff(wanted, got); diff != "" || err != nil {
			t.Errorf("format %q (%v), want-, got+:\n%s", format, err, diff)
		}
	}
}

// A receiver that asks for a pause of more than two minutes gets no further attempt now; the caller learns how long to wait.
func TestAReceiverThatAsksForAPause(t *testing.T) {
	attempts := 0
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		attempts++
		w.Header().Set("Retry-After", "300")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer receiver.Close()
	err := newSender(t, receiver.URL, "127.0.0.0/8").Send(t.Context(), "1", "test", time.Unix(0, 0), nil)
	asked, ok := errors.AsType[*backoff.RetryAfterError](err)
	if !ok || asked.Duration != 5*time.Minute || attempts != 1 {
		t.Errorf("%d attempts and %v, want one and a pause of 5 minutes", attempts, err)
	}
}

func newSender(t *testing.T, url, network string) *Sender {
	t.Helper()
	s, err := New(&Config{URL: egress.UnrestrictedURL(url), Secret: secret, Networks: []egress.Network{{Prefix: netip.MustParsePrefix(network)}}}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	s.pauses = new(backoff.ZeroBackOff)
	return s
}

func TestValidate(t *testing.T) {
	for url, want := range map[string]string{
		"":                             "",
		"https://hooks.example/x?y=z":  "",
		"http://127.0.0.1:8080/":       "",
		"http://hooks.example/":        "url: must be https unless the host is a loopback address",
		"https://ann:pw@hooks.example": "url: must have a host and no user",
		"ftp://hooks.example":          "url: must be https unless the host is a loopback address",
		"https://":                     "url: must have a host and no user",
	} {
		listed := []egress.Network{{Prefix: netip.MustParsePrefix("127.0.0.0/8")}}
		if got := faultOf((&Config{URL: egress.UnrestrictedURL(url), Secret: secret, Networks: listed}).Validate()); got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
	for host, private := range map[string]string{
		"hooks.example": "", "203.0.113.9": "203.0.113.9", "8.8.8.8": "", "[2606:4700::1111]": "",
		"10.0.0.5": "10.0.0.5", "[fd00::5]": "fd00::5", "169.254.169.254": "169.254.169.254", "127.0.0.1": "127.0.0.1",
		"localhost": "localhost", "hooks": "hooks", "hooks.ops.svc": "hooks.ops.svc", "alerts.corp.internal.": "alerts.corp.internal", "printer.local": "printer.local",
	} {
		got := faultOf((&Config{URL: egress.UnrestrictedURL("https://" + host + "/"), Secret: secret}).Validate())
		if private == "" && got != "" || private != "" && (!strings.HasPrefix(got, "networks: must list the network of the receiver") || !strings.Contains(got, private)) {
			t.Errorf("https://%s/ without networks: %q", host, got)
		}
	}
	short := Config{URL: egress.UnrestrictedURL("https://hooks.example"), Secret: strictyaml.NewSecret("short")}
	if got, want := faultOf(short.Validate()), "secret: must have at least 24 bytes"; got != want {
		t.Errorf("a short secret: %q, want %q", got, want)
	}
}

func faultOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
