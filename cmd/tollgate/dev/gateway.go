package dev

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// Gateway is a client of a gateway with a developer's key.
type Gateway struct {
	// URL is the address of the gateway without a trailing slash. Key is the developer's key.
	URL, Key string
	// HTTP sends the requests.
	HTTP *http.Client
}

// refusalError is a response with an error status.
type refusalError struct {
	Status   int
	Detail   string
	Approval *struct{ ID string }
	Decision string
}

func (r *refusalError) Error() string {
	text := fmt.Sprintf("%s (%d)", cmp.Or(r.Detail, http.StatusText(r.Status)), r.Status)
	judged := r.Status == http.StatusForbidden || r.Status == http.StatusPaymentRequired
	if judged && r.Approval == nil && r.Decision != "" {
		text += "; the call cannot be approved: for details, an operator can run 'tollgate explain " + r.Decision + "'"
	}
	return text
}

// status returns the HTTP status of a refusal, or 0 for any other error.
func status(err error) int {
	if r, ok := errors.AsType[*refusalError](err); ok {
		return r.Status
	}
	return 0
}

// maxAnswer is the maximum size of a response, and maxPayload is the maximum size of a request to a worker, in bytes.
const (
	maxAnswer  = 32 << 20
	maxPayload = 10 << 20
)

// answer is a response read into memory.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// send sends one request and returns the response with any status.
func (g *Gateway) send(ctx context.Context, method, path string, header http.Header, body []byte) (*answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, g.URL+path, bytes.NewReader(body)) //nolint:gosec // the developer chooses the gateway
	if err != nil {
		return nil, err
	}
	if header != nil {
		req.Header = header.Clone()
	}
	req.Header.Set("Authorization", "Bearer "+g.Key)
	if len(body) > 0 && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := g.HTTP.Do(req) //nolint:gosec // the developer chooses the gateway
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		return nil, fmt.Errorf("gateway %s: %w", g.URL, cmp.Or(context.Cause(ctx), err))
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("gateway %s: %w", g.URL, cmp.Or(context.Cause(ctx), err))
	case len(raw) > maxAnswer:
		return nil, fmt.Errorf("gateway %s: response exceeds %d MiB", g.URL, maxAnswer>>20)
	}
	return &answer{status: res.StatusCode, header: res.Header, body: raw}, nil
}

// call is like send with JSON bodies. An error status is returned as a *refusalError.
func (g *Gateway) call(ctx context.Context, method, path string, header http.Header, body, into any) error {
	var raw []byte
	if body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return err
		}
	}
	a, err := g.send(ctx, method, path, header, raw)
	switch {
	case err != nil:
		return err
	case a.status >= http.StatusBadRequest:
		return refusalOf(a)
	case into == nil:
		return nil
	}
	if err := json.Unmarshal(a.body, into); err != nil {
		return fmt.Errorf("gateway %s: %s %s: %w", g.URL, method, path, err)
	}
	return nil
}

// allowed matches the permitted values in a violation.
var allowed = regexp.MustCompile(` \(allowed: [^()]*\)`)

// allowedOnce moves the permitted values of all violations to the end of the text, without duplicates. Duplicates are common, because an
// endpoint on any GPU has a violation for each pool.
func allowedOnce(detail string) string {
	list := allowed.FindString(detail)
	if list == "" || strings.Count(detail, list) == 1 {
		return detail
	}
	return strings.ReplaceAll(detail, list, "") + list
}

// refusalOf parses an error response: a problem document of the REST API, or an error of the run interface.
func refusalOf(a *answer) *refusalError {
	var refusal struct {
		refusalError
		Error  any
		Errors []string
	}
	if json.Unmarshal(a.body, &refusal) != nil {
		refusal.Detail = shortened(strings.TrimSpace(string(a.body)))
	}
	refusal.refusalError.Status, refusal.Detail = a.status, allowedOnce(refusal.Detail)
	if text, ok := refusal.Error.(string); ok {
		refusal.Detail = cmp.Or(refusal.Detail, text)
	}
	if a.status == http.StatusBadRequest || a.status == http.StatusUnprocessableEntity { // other statuses have the whole message in the detail
		refusal.Detail = strings.TrimSpace(refusal.Detail + " " + strings.Join(refusal.Errors, "; "))
	}
	return &refusal.refusalError
}

// record holds the members of an endpoint that the package reads.
type record struct{ ID, Name string }

// there reports whether an endpoint exists with this ID and a name that begins with livePrefix and name.
func (g *Gateway) there(ctx context.Context, name, id string) (bool, error) {
	var r record
	err := g.call(ctx, http.MethodGet, "/v2/serverless/"+url.PathEscape(id), nil, nil, &r)
	if status(err) == http.StatusNotFound {
		return false, nil
	}
	return strings.HasPrefix(r.Name, livePrefix+name), err
}

// quote is the maximum cost of a change in USD, and the state of the budgets after the change.
type quote struct {
	hourly, monthly float64
	// priced is true if every call of the change has a price. Otherwise the amounts are too low.
	priced  bool
	budgets []budget
	// labels is the value of the labels header used for the estimate.
	labels string
	// refusal is the predicted refusal. Its Status is 0 if the change is permitted.
	refusal refusalError
}

type budget struct {
	Budget       string
	Limit, After float64
}

// estimate predicts the cost and the outcome of a call by a dry run.
func (g *Gateway) estimate(ctx context.Context, method, path string, header http.Header, body any) (quote, error) {
	q := quote{labels: header.Get(labelsHeader)}
	header.Set("Tollgate-Dry-Run", "true")
	var e struct {
		Status int
		Detail string
		Calls  []struct {
			Cost struct {
				Hourly  *float64 `json:"usd_per_hour"`
				Monthly float64  `json:"usd_per_month"`
			}
			Budgets []budget
		}
	}
	if err := g.call(ctx, method, path, header, body, &e); err != nil {
		return q, err
	}
	q.refusal = refusalError{Status: e.Status, Detail: allowedOnce(e.Detail)}
	q.priced = len(e.Calls) > 0
	for _, c := range e.Calls {
		if c.Cost.Hourly == nil {
			q.priced = false
			continue
		}
		q.hourly += *c.Cost.Hourly
		q.monthly += c.Cost.Monthly
		q.budgets = append(q.budgets, c.Budgets...)
	}
	return q, nil
}
