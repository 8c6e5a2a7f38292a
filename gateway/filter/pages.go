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

// Paginate serves the lists that the platform pages (reference platform-v2-growth, section 1) in
// pages of the gateway's own: cursors belong to one caller, operation and set of parameters, and
// hidden resources leave no gaps. It runs after the judge, which validates the parameters. Lists
// that a translator or another stage reads are whole.
type Paginate struct {
	// Upstream has the platform keys: the keys that seal cursors are derived from them.
	Upstream *upstream.Client
}

// Name implements Filter.
func (Paginate) Name() string { return "pages" }

// Request takes the parameters of the page out of the query. It refuses with 422 a cursor that was
// not made for this call.
func (f Paginate) Request(_ context.Context, ex *Exchange) error {
	row, _ := operation.Of(ex.Operation.ID)
	if row.Pages == "" || ex.Progress.Nested {
		return nil
	}
	cursor, limit := ex.Query.Get("cursor"), ex.Query.Get("limit")
	ex.Query.Del("cursor")
	ex.Query.Del("limit")
	sealed, err := f.seal(ex)
	if err != nil {
		return err
	}
	w := &pageBuilder{list: row.Pages, limit: ex.Operation.MaxPage(), sealed: sealed, visible: ex.Access.visible}
	if n, err := strconv.Atoi(limit); err == nil {
		w.limit = n
		if w.visible == nil {
			w.at.Size = n
		}
	}
	if cursor != "" {
		if w.at, err = sealed.open(cursor); err != nil {
			return notACursor("is not a cursor of this list for this caller and these parameters, or the organisation's platform key has changed since")
		}
	}
	w.startSeek()
	ex.Progress.page = w
	return nil
}

// notACursor is the refusal of a cursor.
func notACursor(why string) error {
	return violations(problem.Invalid.New("Request validation failed."), []schema.Violation{
		{Location: "query.cursor", Message: why + ": start over without cursor"},
	})
}

// PassesListThrough reports whether the call is a list that its caller is sent as the platform
// returns it: nothing in the gateway depends on its items.
func (ex *Exchange) PassesListThrough() bool {
	row, _ := operation.Of(ex.Operation.ID)
	return row.Resources() != "" && !ex.Progress.Nested && !ex.Tenant.Isolation.Read.restricts()
}

// pageQuery returns the query of the request for the page of the platform at a cursor, "" for the
// first page.
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

// readList makes one answer of pages of a list, of which the first is the exchange's answer. It
// makes the page of the caller, or the whole list. A page that the platform refuses becomes the
// answer.
func (ex *Exchange) readList(ctx context.Context, client *upstream.Client, row *operation.Row) error {
	if w := ex.Progress.page; w != nil {
		return w.fill(ctx, ex, client)
	}
	if ex.Response.Status != http.StatusOK {
		return nil
	}
	pages := &upstream.PageJoiner{Member: row.Resources()}
	cursor, err := pages.Add(ex.Response.Body)
	if err != nil && !errors.Is(err, upstream.ErrPagination) {
		return nil // a body that is not an object is not a list, and is relayed as it is
	}
	for ; err == nil && cursor != ""; cursor, err = pages.Add(ex.Response.Body) {
		if err := ex.readPage(ctx, client, cursor); err != nil || ex.Response.Status != http.StatusOK {
			return err
		}
	}
	if err != nil {
		return notRead(err)
	}
	ex.answerList(pages.Join(row.Pages != ""))
	return nil
}

// notRead is the refusal of a list that cannot be read.
func notRead(err error) error {
	return problem.UpstreamFailed.New("the platform's list cannot be read to its end").Because(err)
}

// answerList makes a list the body of the answer.
func (ex *Exchange) answerList(body []byte) {
	ex.Response.Body = body
	ex.Response.Header.Del("Content-Length")
}

// readPage makes the page of a list at a cursor the exchange's answer, or the platform's refusal.
func (ex *Exchange) readPage(ctx context.Context, client *upstream.Client, cursor string) error {
	target := ex.Out.Path + "?" + ex.pageQuery(cursor)
	res, err := client.Do(ctx, upstream.Request{Org: ex.Caller.Org, Method: http.MethodGet, Target: target, Header: ex.Out.Header})
	if err != nil {
		return err
	}
	ex.SetUpstreamResponse(res.StatusCode, res.Header)
	if err := ex.readAnswer(ctx, res); err != nil {
		ex.MarkInterrupted()
		return fmt.Errorf("%w: the answer's body: %w", upstream.ErrUnreachable, err)
	}
	if res.StatusCode < http.StatusMultipleChoices && res.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: a page of a list was answered %d", upstream.ErrUnreachable, res.StatusCode)
	}
	return nil
}
