package filter

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
)

// maxPages is the maximum number of platform pages that are read for one page of a caller.
const maxPages = 20

// visibility reports for each record of a list whether the caller may see it.
type visibility func(ctx context.Context, records []map[string]any) ([]bool, error)

// pageBuilder builds one page for a caller from pages of the platform. Resources may be created and deleted between pages. An item that
// exists throughout appears on exactly one of the caller's pages if it appears on exactly one of the platform's pages.
type pageBuilder struct {
	// list is the name of the member that contains the list.
	list string
	// limit is the number of items per page.
	limit  int
	sealed cursorSeal
	// visible selects the items that the caller may see, nil for all.
	visible visibility
	// at is the position where the page begins. While the page is filled, it is the next page of the platform to read.
	at position

	first upstream.Page
	items [][]byte
	bytes int // of items
	pages int // platform pages read so far
	// skip contains the marks of items before the position and of items already taken. It is nil while the platform's first page is read
	// from its beginning.
	skip map[mark]bool
	// after contains the marks of items after the position. seeking is true until the position is found; items are skipped until then, and
	// passed reports that there were any.
	after           map[mark]bool
	seeking, passed bool
	cursors         []string // of the pages read
}

// startSeek prepares the search for the position of the page.
func (w *pageBuilder) startSeek() {
	w.skip, w.after, w.cursors = nil, nil, nil
	if w.seeking, w.passed = w.at.Seek, false; len(w.at.Before) == 0 {
		return
	}
	w.skip, w.after = make(map[mark]bool), make(map[mark]bool)
	for m := range slices.Chunk(w.at.Before, len(mark{})) {
		w.skip[mark(m)] = true
	}
	for m := range slices.Chunk(w.at.After, len(mark{})) {
		w.after[mark(m)] = true
	}
}

// fill sets the response to the caller's page. The response must already be the first page of the platform.
func (w *pageBuilder) fill(ctx context.Context, ex *Exchange, client *upstream.Client) error {
	for {
		if w.at.Cursor != "" && ex.Response.Status == http.StatusUnprocessableEntity {
			return notACursor("has expired")
		}
		if ex.Response.Status != http.StatusOK {
			return nil
		}
		if w.pages == 0 && w.visible == nil && w.skip == nil && !w.seeking {
			if page, ok := upstream.WholeList(w.list, ex.Response.Body, w.limit); ok {
				ex.answerList(page)
				return nil
			}
		}
		pg, err := w.read(ex.Response.Body)
		if err != nil {
			return notRead(fmt.Errorf("%w: page %d: %w", upstream.ErrUnreachable, w.pages, err))
		}
		next, more, err := w.add(ctx, &pg)
		if err != nil {
			return err
		}
		ex.Translation.lists.shrinkTo(joinedSize * int64(w.bytes))
		if !more {
			return w.answer(ex, next)
		}
		w.at = *next
		if err := ex.readPage(ctx, client, w.at.Cursor); err != nil {
			return err
		}
	}
}

// read parses a page of the platform.
func (w *pageBuilder) read(text []byte) (upstream.Page, error) {
	pg, err := upstream.ReadPage(w.list, text)
	if w.pages++; err != nil {
		return pg, err
	}
	if err := pg.CheckSequence(w.pages); err != nil {
		return pg, err
	}
	if w.cursors = append(w.cursors, w.at.Cursor); pg.Next != "" && slices.Contains(w.cursors, pg.Next) {
		return pg, fmt.Errorf("%w: repeated cursor", upstream.ErrPagination)
	}
	switch {
	case w.pages == 1:
		w.first = pg
	case w.skip == nil:
		w.skip = make(map[mark]bool)
		for _, item := range w.items {
			w.skip[markOf(item)] = true
		}
	}
	return pg, nil
}

// add takes items from a page of the platform. more reports that another page is needed; next is the position to continue from, nil at the
// end of the list.
func (w *pageBuilder) add(ctx context.Context, pg *upstream.Page) (next *position, more bool, err error) {
	shown, err := w.shown(ctx, pg.Items)
	if err != nil {
		return nil, false, err
	}
	for i, item := range pg.Items {
		if !w.passes(item) || shown != nil && !shown[i] {
			continue
		}
		if len(w.items) == w.limit {
			return w.at.within(pg, i), false, nil
		}
		if w.take(item); w.bytes > upstream.MaxList {
			return nil, false, notRead(fmt.Errorf("%w: more than %d bytes", upstream.ErrPagination, upstream.MaxList))
		}
	}
	return w.end(pg)
}

// end completes add after the last item of a page. If nothing is hidden, the next page may begin with the platform's next page. Otherwise
// it begins with an item that the caller may see.
func (w *pageBuilder) end(pg *upstream.Page) (next *position, more bool, err error) {
	more = w.pages < maxPages && (len(w.items) < w.limit || w.visible != nil)
	next = &position{Cursor: pg.Next, Size: w.at.Size}
	switch {
	case pg.Next == "" && w.seeking && w.passed && !w.at.Last:
		if next, more = w.at.restart(); !more {
			return nil, false, notACursor("cannot be continued because all nearby items were deleted")
		}
		w.at = *next
		w.startSeek()
		return next, w.pages < maxPages, nil
	case pg.Next == "":
		return nil, false, nil
	case w.seeking || len(w.items) == 0:
		*next = w.at
		next.Cursor, next.Seek = pg.Next, w.seeking
	}
	return next, more, nil
}

// passes reports whether an item is after the position and not yet on the page.
func (w *pageBuilder) passes(item []byte) bool {
	if w.skip == nil {
		return true
	}
	m := markOf(item)
	if w.seeking {
		w.seeking, w.passed = !w.skip[m] && !w.after[m], true
	}
	if w.seeking || w.skip[m] {
		return false
	}
	w.skip[m] = true
	return true
}

// take adds an item to the page. It copies the item if the page is filtered, so that the platform's page can be released.
func (w *pageBuilder) take(item []byte) {
	if w.visible != nil {
		item = bytes.Clone(item)
	}
	w.items, w.bytes = append(w.items, item), w.bytes+len(item)
}

// shown reports which items the caller may see, nil for all.
func (w *pageBuilder) shown(ctx context.Context, items [][]byte) ([]bool, error) {
	if w.visible == nil {
		return nil, nil
	}
	records := make([]map[string]any, len(items))
	for i, item := range items {
		doc, err := strictjson.DecodeLenient(item)
		if err != nil {
			return nil, notRead(err)
		}
		records[i], _ = doc.(map[string]any)
	}
	return w.visible(ctx, records)
}

// answer sets the body of the response to the caller's page. If the caller gets the whole list and the platform returned it as one page,
// that page remains the response.
func (w *pageBuilder) answer(ex *Exchange, next *position) (err error) {
	if w.pages == 1 && w.first.Last && len(w.items) == len(w.first.Items) {
		return nil
	}
	cursor := ""
	if next != nil {
		if cursor, err = w.sealed.close(next); err != nil {
			return err
		}
	}
	ex.answerList(w.first.WithItems(w.items, cursor))
	return nil
}
