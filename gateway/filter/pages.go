package filter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Pages answers the paging parameters of callers. The gateway returns every list whole, on one
// page, so no cursor is valid here, and a limit holds or is refused.
type Pages struct{}

// Name implements Filter.
func (Pages) Name() string { return "pages" }

// maxLimit is the largest limit of a page (reference platform-v2-growth, section 1.1).
const maxLimit = 1000

// Request refuses a cursor, and a limit out of bounds, with 422.
func (Pages) Request(_ context.Context, ex *Exchange) error {
	row, _ := operation.Of(ex.Operation.ID)
	if row.Pages == "" || ex.Path.Nested {
		return nil
	}
	var faults []schema.Violation
	if ex.Query.Has("cursor") {
		faults = append(faults, schema.Violation{Location: "query.cursor", Message: "is not a cursor of this list: lists are returned whole, so omit it"})
	}
	if values, given := ex.Query["limit"]; given {
		n, err := strconv.Atoi(values[0])
		if err != nil || len(values) > 1 || n < 1 || n > maxLimit {
			faults = append(faults, schema.Violation{Location: "query.limit", Message: fmt.Sprintf("must be one integer from 1 to %d", maxLimit)})
		}
		ex.Path.limit = n
	}
	if len(faults) > 0 {
		return violations(problem.Invalid.New("Request validation failed."), faults)
	}
	return nil
}

// Response refuses with 422 a list that is longer than its caller's limit.
func (Pages) Response(_ context.Context, ex *Exchange) error {
	if ex.Path.limit == 0 || !ex.Answer.Relayed || ex.Answer.Status != http.StatusOK {
		return nil
	}
	row, _ := operation.Of(ex.Operation.ID)
	doc, err := strictjson.DecodeListed(ex.Answer.Body)
	if err != nil {
		return nil //nolint:nilerr // a body that is not JSON is not a list, and is relayed as it is
	}
	var list []any
	switch answer := doc.(type) {
	case *strictjson.Node:
		items, _ := answer.Get(row.Pages)
		list, _ = items.([]any)
	case map[string]any:
		list, _ = answer[row.Pages].([]any)
	}
	if len(list) <= ex.Path.limit {
		return nil
	}
	return violations(problem.Invalid.New("Request validation failed."), []schema.Violation{{
		Location: "query.limit", Message: fmt.Sprintf("the list has %d entries and is returned whole: omit limit, or raise it", len(list)),
	}})
}

// SentAsListed reports whether the call is a list that its caller is sent as the platform
// returns it: nothing in the gateway depends on its items.
func (ex *Exchange) SentAsListed() bool {
	row, _ := operation.Of(ex.Operation.ID)
	return row.Resources() != "" && !ex.Path.Nested && !ex.Tenant.Isolation.Read.narrow()
}

// readPages reads the pages of a list after the first, which is the exchange's answer, and
// makes one answer of all. A page that the platform refuses becomes the answer. paginate
// adds the pagination member to the list of a platform that does not page.
func (ex *Exchange) readPages(ctx context.Context, client *upstream.Client, pages *upstream.Pages, paginate bool) error {
	cursor, err := pages.Add(ex.Answer.Body)
	if err != nil && !errors.Is(err, upstream.ErrPages) {
		return nil // a body that is not an object is not a list, and is relayed as it is
	}
	for ; err == nil && cursor != ""; cursor, err = pages.Add(ex.Answer.Body) {
		query := ex.Out.Query
		if query != "" {
			query += "&"
		}
		target := ex.Out.Path + "?" + query + "cursor=" + url.QueryEscape(cursor)
		res, err := client.Do(ctx, upstream.Request{Org: ex.Caller.Org, Method: http.MethodGet, Target: target, Header: ex.Out.Header})
		if err != nil {
			return err
		}
		ex.Receive(res.StatusCode, res.Header)
		if err := ex.readAnswer(ctx, res); err != nil {
			ex.Broke()
			return fmt.Errorf("%w: the answer's body: %w", upstream.ErrUnreachable, err)
		}
		switch {
		case res.StatusCode >= http.StatusMultipleChoices:
			return nil
		case res.StatusCode != http.StatusOK:
			return fmt.Errorf("%w: a page of a list was answered %d", upstream.ErrUnreachable, res.StatusCode)
		}
	}
	if err != nil {
		return problem.UpstreamFailed.New("the platform's list cannot be read to its end").Because(err)
	}
	ex.Answer.Body = pages.Whole(paginate)
	ex.Answer.Header.Del("Content-Length")
	return nil
}
