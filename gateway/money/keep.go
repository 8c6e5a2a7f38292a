package money

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	_ "embed" // the page
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
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/view"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// The routes by which an owner keeps a resource that is idle: under a key, or by a
// signed link, whose GET shows a page that changes nothing, because programs fetch
// links before people do.
const (
	snoozePath     = "/tollgate/keep"
	snoozeRoute    = "keep"
	snoozePageID   = "keep.page"
	snoozeLinkID   = "keep.link"
	snoozeTime     = 24 * time.Hour     // unless the caller asks for another
	snoozeLinkTime = 7 * 24 * time.Hour // how long a link is valid
)

// SnoozeRoutes lists the routes.
func SnoozeRoutes() []route.Route {
	return []route.Route{
		{ID: snoozeRoute, Dialect: route.V2, Method: http.MethodPost, Pattern: snoozePath + "/{id}"},
		{ID: snoozePageID, Dialect: route.V2, Method: http.MethodGet, Pattern: snoozePath, Public: true},
		{ID: snoozeLinkID, Dialect: route.V2, Method: http.MethodPost, Pattern: snoozePath, Public: true},
	}
}

// SnoozeLinks makes and reads signed links.
type SnoozeLinks struct{ *view.Current }

// Snooze answers the routes. All fields are required.
type Snooze struct {
	SnoozeLinks
	// Updates are the operations that change a kind of resource.
	Updates map[operation.Kind]*schema.Operation
	// Access knows which operations the policies refuse a caller.
	Access *callers.Access
}

// Answers maps the routes to their answers.
func (s *Snooze) Answers() map[string]filter.Responder {
	return map[string]filter.Responder{snoozeRoute: s.answerSnooze, snoozePageID: s.answerSnoozePage, snoozeLinkID: s.answerSnoozeLink}
}

// snoozeResult is the answer to a caller that keeps a resource.
type snoozeResult struct {
	Resource string `json:"resource"`
	// Until is null for one that is no longer kept.
	Until *time.Time `json:"until"`
}

// answerSnooze keeps a resource for a caller who may change it.
func (s *Snooze) answerSnooze(ctx context.Context, ex *filter.Exchange) (*filter.Response, error) {
	length := snoozeTime
	for name, values := range ex.Query {
		var err error
		if length, err = time.ParseDuration(values[0]); name != "for" || len(values) != 1 || err != nil || length < 0 || length > ledger.MaxSnooze {
			return nil, problem.BadRequest.Newf("the query takes for alone, a duration such as 24h, of at most %s", ledger.MaxSnooze)
		}
	}
	id := ex.Params["id"]
	until, err := s.snooze(ctx, ex, ex.Caller.Org, id, length, audit.Record{Team: ex.Caller.Team, Key: ex.Caller.Key}, func(r *ledger.Record) error {
		if !ex.Tenant.Isolation.CanChange(ex.Caller, r.Owner) {
			return ledger.ErrNoResource
		}
		return s.mayUpdate(ctx, ex, operation.Kind(r.Kind))
	})
	if err != nil {
		return nil, err
	}
	answer := snoozeResult{Resource: id}
	if !until.IsZero() {
		until = until.UTC()
		answer.Until = &until
	}
	return filter.JSONResponse(answer)
}

// mayUpdate refuses callers whose updates of a kind the policies refuse in any
// case: keeping an idle resource costs like a change.
func (s *Snooze) mayUpdate(ctx context.Context, ex *filter.Exchange, kind operation.Kind) error {
	op := s.Updates[kind]
	if op == nil {
		return nil
	}
	refused, err := s.Access.Refused(ctx, ex, op)
	if err == nil && len(refused) > 0 {
		err = problem.Forbidden.New("whoever keeps a resource must be allowed to change it: " + strings.Join(refused, "; "))
	}
	return err
}

// snooze keeps a resource for a time, or ends that for 0. A change that may does not refuse is
// audited.
func (s *Snooze) snooze(ctx context.Context, ex *filter.Exchange, org, id string, length time.Duration, who audit.Record, may func(*ledger.Record) error) (until time.Time, err error) {
	if len(ex.In.Body) > 0 {
		return until, problem.BadRequest.New("the operation takes no body")
	}
	var seq int64
	until, err = ex.Ports.Keeper.Snooze(ctx, org, id, length, func(r *ledger.Record) error {
		if err := may(r); err != nil {
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
		err = problem.NotFound.New("the organisation has nothing with this id that costs money")
	case err != nil && !isProblem(err):
		err = problem.LedgerUnavailable.New("it cannot be determined at the moment what there is").With("Retry-After", "1").Because(err)
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

// Link is a link by which its owner can keep a resource, "" where the
// organisation has none.
func (l SnoozeLinks) Link(org, id string) string {
	cfg := l.Config()
	o := cfg.Org(org)
	if o == nil || !o.Alerts.KeepSecret.Resolved() {
		return ""
	}
	q := url.Values{"org": {org}, "id": {id}, "expires": {strconv.FormatInt(l.Now().Add(snoozeLinkTime).Unix(), 10)}}
	q.Set("signature", snoozeSignature(o, q))
	return strings.TrimSuffix(cfg.PublicURL, "/") + snoozePath + "?" + q.Encode()
}

// snoozeSignature signs the other members of a link.
func snoozeSignature(o *settings.Org, q url.Values) string {
	mac := hmac.New(sha256.New, []byte(o.Alerts.KeepSecret.Reveal()))
	mac.Write([]byte(snoozePath + "?" + url.Values{"org": {q.Get("org")}, "id": {q.Get("id")}, "expires": {q.Get("expires")}}.Encode()))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// readSnoozeLink returns the purpose of a link. The answer is the same for every
// fault.
func (s *Snooze) readSnoozeLink(q url.Values) (org, id string, expires time.Time, err error) {
	bad := problem.NotFound.New("the link is not valid, or no longer")
	for _, name := range []string{"org", "id", "expires", "signature"} {
		if len(q[name]) != 1 {
			return "", "", expires, bad
		}
	}
	o := s.Config().Org(q.Get("org"))
	if o == nil || !o.Alerts.KeepSecret.Resolved() || len(q) != 4 || !hmac.Equal([]byte(snoozeSignature(o, q)), []byte(q.Get("signature"))) {
		return "", "", expires, bad
	}
	seconds, err := strconv.ParseInt(q.Get("expires"), 10, 64)
	if expires = time.Unix(seconds, 0).UTC(); err != nil || !s.Now().Before(expires) {
		return "", "", expires, bad
	}
	return o.ID, q.Get("id"), expires, nil
}

// answerSnoozePage shows the effect of a link.
func (s *Snooze) answerSnoozePage(_ context.Context, ex *filter.Exchange) (*filter.Response, error) {
	org, id, expires, err := s.readSnoozeLink(ex.Query)
	if err != nil {
		return nil, err
	}
	return keepAnswer(&snoozeView{Org: org, ID: id, Expires: expires, Target: snoozePath + "?" + ex.Query.Encode(), For: snoozeTime}), nil
}

// answerSnoozeLink keeps the resource of a link.
func (s *Snooze) answerSnoozeLink(ctx context.Context, ex *filter.Exchange) (*filter.Response, error) {
	org, id, expires, err := s.readSnoozeLink(ex.Query)
	if err != nil {
		return nil, err
	}
	until, err := s.snooze(ctx, ex, org, id, snoozeTime, audit.Record{Who: "link"}, func(*ledger.Record) error { return nil })
	if err != nil {
		return nil, err
	}
	return keepAnswer(&snoozeView{Org: org, ID: id, Expires: expires, Until: until}), nil
}

// snoozeView is the content of the page.
type snoozeView struct {
	Org, ID string
	Expires time.Time
	// Target and For are set before, Until after the resource is kept.
	Target string
	For    time.Duration
	Until  time.Time
}

// The page, with two places to fill.
//
//go:embed keep.html
var snoozePage string

// html returns the page for v.
func (v *snoozeView) html() string {
	const layout = "2006-01-02 15:04 MST"
	org, id := html.EscapeString(v.Org), html.EscapeString(v.ID)
	said := "<p>It is kept until " + v.Until.Format(layout) + ", though it is idle."
	if v.Target != "" {
		said = fmt.Sprintf(`<p>This resource of organisation %s is idle. To have it left alone for %g hours, press the button.
<form method="post" action="%s"><button>Keep it</button></form>
<p>The link is valid until %s.`, org, v.For.Hours(), html.EscapeString(v.Target), v.Expires.Format(layout))
	}
	return strings.NewReplacer("{id}", id, "{said}", said).Replace(snoozePage)
}

func keepAnswer(v *snoozeView) *filter.Response {
	return &filter.Response{Status: http.StatusOK, Body: []byte(v.html()), Header: http.Header{
		"Content-Type":            {"text/html; charset=utf-8"},
		"Content-Security-Policy": {"default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"},
		"Referrer-Policy":         {"no-referrer"},
		"Cache-Control":           {"no-store"},
	}}
}
