package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/alerts"
	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/operator"
)

// asked holds the parameters of a request and the output format.
type asked struct {
	url.Values

	out *output
}

// write writes a response: unchanged as JSON or YAML, or as the tables of its page, preceded by the sentences of the page if people read
// them.
func (a asked) write(w io.Writer, answer []byte, show view) error {
	p, err := show(answer, a)
	switch {
	case err != nil:
		return err
	case a.out.format == "json", a.out.format == "yaml":
		return a.out.raw(w, answer)
	case a.out.people():
		for _, line := range p.text {
			_, _ = fmt.Fprintln(w, line)
		}
	}
	return a.out.tables(w, p.sheets)
}

// page is a response formatted as tables. The sentences in text precede the tables and are written only for people.
type page struct {
	text   []string
	sheets []sheet
}

// add adds a table if it has rows.
func (p *page) add(s sheet) {
	if len(s) > 1 {
		p.sheets = append(p.sheets, s)
	}
}

// view formats a JSON response as a page.
type view func(text []byte, a asked) (page, error)

// of returns a view for responses of type A.
func of[A any](show func(answer *A, a asked) page) view {
	return func(text []byte, a asked) (page, error) {
		answer := new(A)
		if err := json.Unmarshal(text, answer); err != nil {
			return page{}, err
		}
		return show(answer, a), nil
	}
}

// sentenceView returns a view that prints a sentence for people and a table for programs.
func sentenceView[A any](say func(answer *A) string) view {
	return func(text []byte, a asked) (page, error) {
		if !a.out.people() {
			return plain(reflect.TypeFor[A]())(text, a)
		}
		return of(func(answer *A, _ asked) page { return page{text: []string{say(answer)}} })(text, a)
	}
}

// views returns the views of commands that do not use the default view, by command.
func views() map[string]view {
	return map[string]view{
		"status":          of(overviewPage),
		"limits show":     of(limitsPage),
		"spend show":      of(ledgerPage),
		"spend resources": of(resourcesPage),
		"spend holds":     of(holdsPage),
		"spend holds release": sentenceView(func(h *money.Hold) string {
			return fmt.Sprintf("%s is released: it was %s for %s (%s)", h.ID, h.State, age(h.Age), owner(h.Team, h.Key))
		}),
		"spend adjust": sentenceView(adjustedLine),
		"spend reconcile": sentenceView(func(r *money.Reconciled) string {
			return fmt.Sprintf("%d resources: %d adopted, %d removed, %d changed. Holds: %d carried out, %d released, %d open.",
				r.Resources, r.Adopted, r.Removed, r.Changed, r.Found, r.Released, r.Open)
		}),
		"spend history":   of(costsPage),
		"spend top":       of(costsPage),
		"spend forecast":  of(forecastPage),
		"spend idle":      of(idlePage),
		"spend snooze":    sentenceView(snoozedLine),
		"approvals list":  of(approvalsPage),
		"approvals grant": sentenceView(grantedLine),
		"approvals deny":  sentenceView(func(r *approval.Record) string { return fmt.Sprintf("%s: denied until %s", r.ID, moment(&r.Until)) }),
		"decisions":       of(decisionsPage),
		"audit list":      of(auditPage),
		"config show": sentenceView(func(c *operator.ActiveConfig) string {
			return fmt.Sprintf("# Revision %s, in force since %s\n%s", c.Revision, moment(&c.Loaded), strings.TrimSuffix(c.YAML, "\n"))
		}),
		"config diff":    sentenceView(diffText),
		"report":         sentenceView(func(w *alerts.Weekly) string { return strings.ReplaceAll(w.Text(), "*", "") }),
		"migrate report": of(legacyPage),
		"envoy status":   of(envoysPage),

		"outcomes":      of(outcomesPage),
		"spend compare": of(comparedPage),
		"spend budgets": of(budgetsPage),
		"spend fits":    of(fitsPage),
		"search":        of(searchPage),
	}
}

// pairs formats the entries of a map.
func pairs(m map[string]string, between string) string {
	list := make([]string, 0, len(m))
	for name, value := range m {
		list = append(list, name+between+value)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

func owner(team, key string) string {
	return cmp.Or(strings.Trim(team+"/"+key, "/"), "organisation")
}

// age formats seconds for people.
func age(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
}

// moment formats a time in RFC 3339, or returns "" for nil.
func moment(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
