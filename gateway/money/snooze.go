package money

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	_ "embed" // for the page
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/audit"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/view"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Routes for snoozing an idle resource: with a caller's key, or with a signed link. A GET of the link only shows a page, because
// programs fetch links before people open them.
const (
	snoozePath     = "/tollgate/snooze"
	snoozeRoute    = "snooze"
	snoozePageID   = "snooze.page"
	snoozeLinkID   = "snooze.link"
	snoozeTime     = 24 * time.Hour     // default duration
	snoozeLinkTime = 7 * 24 * time.Hour // validity of a link
)

// SnoozeLinks creates and verifies signed links.
type SnoozeLinks struct{ *view.Current }

// Snooze serves the routes with which owners snooze idle resources. All fields are required.
type Snooze struct {
	SnoozeLinks
	// Updates are the operations that change each kind of resource.
	Updates map[operation.Kind]*schema.Operation
	// Access reports which operations the policies always refuse to a caller.
	Access *callers.Access
}

// Routes returns the routes with which owners snooze idle resources, by API or by signed link.
func (s *Snooze) Routes() []filter.Served {
	page := filter.Serve(snoozePageID, http.MethodGet, snoozePath, s.answerSnoozePage)
	link := filter.Serve(snoozeLinkID, http.MethodPost, snoozePath, s.answerSnoozeLink)
	page.Public, link.Public = true, true
	return []filter.Served{filter.Serve(snoozeRoute, http.MethodPost, snoozePath+"/{id}", s.answerSnooze), page, link}
}

// answerSnooze snoozes a resource for a caller who is allowed to change it.
func (s *Snooze) answerSnooze(ctx context.Context, ex *filter.Exchange) (*filter.Response, error) {
	length := snoozeTime
	for name, values := range ex.Query {
		var err error
		if length, err = time.ParseDuration(values[0]); name != "for" || len(values) != 1 || err != nil ||
			length < 0 || length > ledger.MaxSnooze {
			return nil, problem.BadRequest.Newf("the query must be empty or for=DURATION, such as for=24h, with at most %s", ledger.MaxSnooze)
		}
	}
	id := ex.Params["id"]
	until, err := s.snooze(ctx, ex, ex.Caller.Org, id, length, audit.Record{Team: ex.Caller.Team, Key: ex.Caller.Key},
		func(r *ledger.Record) error {
			if !ex.Tenant.Isolation.CanChange(ex.Caller, r.Owner) {
				return ledger.ErrNoResource
			}
			return s.mayUpdate(ctx, ex, operation.Kind(r.Kind))
		})
	if err != nil {
		return nil, err
	}
	return filter.JSONResponse(Snoozed{Resource: id, Until: timeOf(until)})
}

// mayUpdate returns 403 if the policies always refuse the caller's updates of resources of the given kind. Snoozing an idle resource causes
// cost, as an update can.
func (s *Snooze) mayUpdate(ctx context.Context, ex *filter.Exchange, kind operation.Kind) error {
	op := s.Updates[kind]
	if op == nil {
		return nil
	}
	refused, err := s.Access.Refused(ctx, ex, op)
	if err == nil && len(refused) > 0 {
		err = problem.Forbidden.New("you need permission to change a resource in order to snooze it: " + strings.Join(refused, "; "))
	}
	return err
}

// snooze snoozes a resource for the given length of time; a length of 0 ends the snooze. If authorize returns an error, nothing is changed.
// A change is recorded in the audit log.
func (s *Snooze) snooze(
	ctx context.Context, ex *filter.Exchange, org, id string, length time.Duration, who audit.Record, authorize func(*ledger.Record) error,
) (until time.Time, err error) {
	if len(ex.In.Body) > 0 {
		return until, problem.BadRequest.New("the request must not have a body")
	}
	var seq int64
	until, err = ex.Ports.Snoozer.Snooze(ctx, org, id, length, func(r *ledger.Record) error {
		if err := authorize(r); err != nil {
			return err
		}
		who.Decision, who.Org, who.Peer, who.Operation, who.Query = ex.DecisionID, org, ex.In.Peer, snoozeRoute, "for="+length.String()
		who.Kind, who.Resource, who.Name = r.Kind, r.ID, r.Metadata.Name
		var err error
		seq, err = ex.RecordIntent(who)
		return err
	})
	switch {
	case errors.Is(err, ledger.ErrNoResource):
		err = problem.NotFound.New("no billable resource of the organisation has this id")
	case err != nil && !isProblem(err):
		err = problem.LedgerUnavailable.New("the spending ledger is unavailable, try again").With("Retry-After", "1").Because(err)
	}
	if seq == 0 {
		return until, err
	}
	result := audit.Record{Resource: id, Status: http.StatusOK}
	if err != nil {
		result.Status = http.StatusServiceUnavailable
	}
	return until, errors.Join(err, ex.Ports.Audit.Result(seq, result))
}

func isProblem(err error) bool {
	_, ok := errors.AsType[*problem.Problem](err)
	return ok
}

// Link returns a link with which the owner can snooze a resource, or "" if links are not configured for the organisation.
func (l SnoozeLinks) Link(org, id string) string {
	cfg := l.Config()
	o := cfg.Org(org)
	if o == nil || !o.Alerts.SnoozeSecret.Resolved() {
		return ""
	}
	q := url.Values{"org": {org}, "id": {id}, "expires": {strconv.FormatInt(l.Now().Add(snoozeLinkTime).Unix(), 10)}}
	q.Set("signature", snoozeSignature(o, q))
	return strings.TrimSuffix(cfg.PublicURL, "/") + snoozePath + "?" + q.Encode()
}

// snoozeSignature returns the signature of a link's parameters.
func snoozeSignature(o *settings.Org, q url.Values) string {
	mac := hmac.New(sha256.New, []byte(o.Alerts.SnoozeSecret.Reveal()))
	mac.Write([]byte(snoozePath + "?" + url.Values{"org": {q.Get("org")}, "id": {q.Get("id")}, "expires": {q.Get("expires")}}.Encode()))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// readSnoozeLink verifies a link and returns its parameters. It returns the same error for every invalid link.
func (s *Snooze) readSnoozeLink(q url.Values) (org, id string, expires time.Time, err error) {
	bad := problem.NotFound.New("the link is invalid or has expired")
	for _, name := range []string{"org", "id", "expires", "signature"} {
		if len(q[name]) != 1 {
			return "", "", expires, bad
		}
	}
	o := s.Config().Org(q.Get("org"))
	if o == nil || !o.Alerts.SnoozeSecret.Resolved() || len(q) != 4 || !hmac.Equal([]byte(snoozeSignature(o, q)), []byte(q.Get("signature"))) {
		return "", "", expires, bad
	}
	seconds, err := strconv.ParseInt(q.Get("expires"), 10, 64)
	if expires = time.Unix(seconds, 0).UTC(); err != nil || !s.Now().Before(expires) {
		return "", "", expires, bad
	}
	return o.ID, q.Get("id"), expires, nil
}

// answerSnoozePage responds with a page that describes the effect of a link.
func (s *Snooze) answerSnoozePage(_ context.Context, ex *filter.Exchange) (*filter.Response, error) {
	org, id, expires, err := s.readSnoozeLink(ex.Query)
	if err != nil {
		return nil, err
	}
	return snoozeResponse(&snoozeView{Org: org, ID: id, Expires: expires, Target: snoozePath + "?" + ex.Query.Encode(), For: snoozeTime}), nil
}

// answerSnoozeLink snoozes the resource of a link.
func (s *Snooze) answerSnoozeLink(ctx context.Context, ex *filter.Exchange) (*filter.Response, error) {
	org, id, expires, err := s.readSnoozeLink(ex.Query)
	if err != nil {
		return nil, err
	}
	until, err := s.snooze(ctx, ex, org, id, snoozeTime, audit.Record{Who: "link"}, func(*ledger.Record) error { return nil })
	if err != nil {
		return nil, err
	}
	return snoozeResponse(&snoozeView{Org: org, ID: id, Expires: expires, Until: until}), nil
}

// snoozeView is the content of the page.
type snoozeView struct {
	Org, ID string
	Expires time.Time
	// Target and For are set before the resource is snoozed, and Until afterwards.
	Target string
	For    time.Duration
	Until  time.Time
}

// snoozePage is the page, with two placeholders.
//
//go:embed snooze.html
var snoozePage string

// html returns the page for v.
func (v *snoozeView) html() string {
	const layout = "2006-01-02 15:04 MST"
	org, id := html.EscapeString(v.Org), html.EscapeString(v.ID)
	text := "<p>Snoozed until " + v.Until.Format(layout) + "."
	if v.Target != "" {
		text = fmt.Sprintf(`<p>This resource of organisation %s is idle. Press the button to snooze it for %g hours.
<form method="post" action="%s"><button>Snooze</button></form>
<p>The link is valid until %s.`, org, v.For.Hours(), html.EscapeString(v.Target), v.Expires.Format(layout))
	}
	return strings.NewReplacer("{id}", id, "{text}", text).Replace(snoozePage)
}

func snoozeResponse(v *snoozeView) *filter.Response {
	return &filter.Response{Status: http.StatusOK, Body: []byte(v.html()), Header: http.Header{
		"Content-Type":            {"text/html; charset=utf-8"},
		"Content-Security-Policy": {"default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"},
		"Referrer-Policy":         {"no-referrer"},
		"Cache-Control":           {"no-store"},
	}}
}
