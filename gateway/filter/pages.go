package filter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Paginate divides the platform's paginated lists into pages itself. Hidden resources therefore leave no gaps in a page, and a cursor is
// valid for only one caller, operation and set of parameters. It runs after EvaluatePolicies, which validates the parameters. Lists that
// are read by a translator or another stage are not paginated.
type Paginate struct {
	// Upstream provides the platform keys, from which the encryption keys for cursors are derived.
	Upstream *upstream.Client
}

// Name implements Filter.
func (Paginate) Name() string { return "paginate" }

// Request removes the pagination parameters from the query. It returns 422 for a cursor that does not belong to this call.
func (f Paginate) Request(_ context.Context, ex *Exchange) error {
	row, _ := operation.Lookup(ex.Operation.ID)
	if row.PagedMember == "" || ex.Progress.Nested {
		return nil
	}
	cursor, limit := ex.Query.Get("cursor"), ex.Query.Get("limit")
	ex.Query.Del("cursor")
	ex.Query.Del("limit")
	sealed, err := f.seal(ex)
	if err != nil {
		return err
	}
	w := &pageBuilder{list: row.PagedMember, limit: ex.Operation.MaxPage(), sealed: sealed, visible: ex.Access.visible}
	if n, err := strconv.Atoi(limit); err == nil {
		w.limit = n
		if w.visible == nil {
			w.at.Size = n
		}
	}
	if cursor != "" {
		if w.at, err = sealed.open(cursor); err != nil {
			return notACursor("does not belong to this caller and list, or the platform key has changed")
		}
	}
	w.startSeek()
	ex.Progress.page = w
	return nil
}

// notACursor returns the refusal of a cursor.
func notACursor(why string) error {
	return violations(problem.Invalid.New("Request validation failed."), []schema.Violation{
		{Location: "query.cursor", Message: why + ": request the first page without a cursor"},
	})
}

// PassesListThrough reports whether the call is a list that is sent to the caller unchanged.
func (ex *Exchange) PassesListThrough() bool {
	row, _ := operation.Lookup(ex.Operation.ID)
	return row.ResourceList() != "" && !ex.Progress.Nested && !ex.Tenant.Isolation.Read.restricts()
}

// pageQuery returns the query for the platform's page at cursor, "" for the first page.
func (ex *Exchange) pageQuery(cursor string) string {
	query := make(url.Values, len(ex.Query)+2)
	maps.Copy(query, ex.Query)
	if w := ex.Progress.page; w != nil && w.at.Size > 0 {
		query.Set("limit", strconv.Itoa(w.at.Size))
	}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	return encodeQuery(query)
}

// readList reads the remaining pages of a list, whose first page is already the response, and sets the response to the caller's page or to
// the whole list. A page that the platform refuses becomes the response.
func (ex *Exchange) readList(ctx context.Context, client *upstream.Client, row *operation.Spec) error {
	if w := ex.Progress.page; w != nil {
		return w.fill(ctx, ex, client)
	}
	if ex.Response.Status != http.StatusOK {
		return nil
	}
	pages := &upstream.PageJoiner{Member: row.ResourceList()}
	cursor, err := pages.Add(ex.Response.Body)
	if err != nil && !errors.Is(err, upstream.ErrPagination) {
		return nil // not a list; relayed unchanged
	}
	for ; err == nil && cursor != ""; cursor, err = pages.Add(ex.Response.Body) {
		if err := ex.readPage(ctx, client, cursor); err != nil || ex.Response.Status != http.StatusOK {
			return err
		}
	}
	if err != nil {
		return notRead(err)
	}
	ex.answerList(pages.Join(row.PagedMember != ""))
	return nil
}

// notRead returns the refusal for a list that cannot be read.
func notRead(err error) error {
	return problem.UpstreamFailed.New("the gateway could not read the complete list from the platform").Because(err)
}

// answerList sets the body of the response to a list.
func (ex *Exchange) answerList(body []byte) {
	ex.Response.Body = body
	ex.Response.Header.Del("Content-Length")
}

// readPage sets the response to the platform's page at a cursor.
func (ex *Exchange) readPage(ctx context.Context, client *upstream.Client, cursor string) error {
	target := ex.Out.Path + "?" + ex.pageQuery(cursor)
	res, err := client.Do(ctx, upstream.Request{Org: ex.Caller.Org, Method: http.MethodGet, Target: target, Header: ex.Out.Header})
	if err != nil {
		return err
	}
	ex.SetUpstreamResponse(res.StatusCode, res.Header)
	if err := ex.readAnswer(ctx, res); err != nil {
		ex.MarkInterrupted()
		return fmt.Errorf("%w: response body: %w", upstream.ErrUnreachable, err)
	}
	if res.StatusCode < http.StatusMultipleChoices && res.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: reading a page of the list returned status %d", upstream.ErrUnreachable, res.StatusCode)
	}
	return nil
}
