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

// maxPages is the number of pages of the platform that one page of a caller is filled from.
const maxPages = 20

// shows reports for each record of a list whether the caller may see it.
type shows func(ctx context.Context, records []map[string]any) ([]bool, error)

// walk makes one page of a caller's list of pages of the platform. Resources may be made and
// deleted between the pages: an item that exists all along is on one page of the caller's and no
// other, if it is for the platform's pages.
type walk struct {
	// list is the member of a page that is the list.
	list string
	// limit is the number of items of the page.
	limit  int
	sealed sealed
	// shows selects the items of the page, nil for all of them.
	shows shows
	// at is where the page begins and, while it is filled, the page of the platform to read next.
	at position

	first upstream.Page
	items [][]byte
	bytes int // of items
	pages int // of the platform, read so far
	// met holds the marks of the items before the beginning and of those taken, which are not taken
	// again; nil while the platform's first page is read from its beginning.
	met map[mark]bool
	// after holds the marks of items behind the beginning. While seeking is set, the beginning has
	// not been found, and items are passed over; passed reports whether there were any.
	after           map[mark]bool
	seeking, passed bool
	cursors         []string // of the pages read
}

// seek prepares to find the beginning of the page.
func (w *walk) seek() {
	w.met, w.after, w.cursors = nil, nil, nil
	if w.seeking, w.passed = w.at.Seek, false; len(w.at.Before) == 0 {
		return
	}
	w.met, w.after = make(map[mark]bool), make(map[mark]bool)
	for m := range slices.Chunk(w.at.Before, len(mark{})) {
		w.met[mark(m)] = true
	}
	for m := range slices.Chunk(w.at.After, len(mark{})) {
		w.after[mark(m)] = true
	}
}

// fill makes the caller's page the exchange's answer, which is the first page of the platform.
func (w *walk) fill(ctx context.Context, ex *Exchange, client *upstream.Client) error {
	for {
		if w.at.Cursor != "" && ex.Answer.Status == http.StatusUnprocessableEntity {
			return notACursor("is not valid any more")
		}
		if ex.Answer.Status != http.StatusOK {
			return nil
		}
		pg, err := w.read(ex.Answer.Body)
		if err != nil {
			return notRead(fmt.Errorf("%w: page %d: %w", upstream.ErrUnreachable, w.pages, err))
		}
		next, more, err := w.add(ctx, &pg)
		if err != nil {
			return err
		}
		if ex.Translation.lists != nil {
			ex.Translation.lists.keep(joinedSize * int64(w.bytes))
		}
		if !more {
			return w.answer(ex, next)
		}
		w.at = *next
		if err := ex.readPage(ctx, client, w.at.Cursor); err != nil {
			return err
		}
	}
}

// read reads a page of the platform.
func (w *walk) read(text []byte) (upstream.Page, error) {
	pg, err := upstream.ReadPage(w.list, text)
	if w.pages++; err != nil {
		return pg, err
	}
	if err := pg.Follows(w.pages); err != nil {
		return pg, err
	}
	if w.cursors = append(w.cursors, w.at.Cursor); pg.Next != "" && slices.Contains(w.cursors, pg.Next) {
		return pg, fmt.Errorf("%w: the cursor is that of an earlier page", upstream.ErrPages)
	}
	switch {
	case w.pages == 1:
		w.first = pg
	case w.met == nil:
		w.met = make(map[mark]bool)
		for _, item := range w.items {
			w.met[markOf(item)] = true
		}
	}
	return pg, nil
}

// add takes the items of a page of the platform. It reports whether the caller's page needs more,
// and where to go on, nil at the end of the list.
func (w *walk) add(ctx context.Context, pg *upstream.Page) (next *position, more bool, err error) {
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
			return nil, false, notRead(fmt.Errorf("%w: more than %d bytes", upstream.ErrPages, upstream.MaxList))
		}
	}
	return w.end(pg)
}

// end is add behind the last item of a page. Where nothing is hidden, the next page may begin with
// the next page of the platform; otherwise it begins with an item that the caller may see.
func (w *walk) end(pg *upstream.Page) (next *position, more bool, err error) {
	more = w.pages < maxPages && (len(w.items) < w.limit || w.shows != nil)
	next = &position{Cursor: pg.Next, Size: w.at.Size}
	switch {
	case pg.Next == "" && w.seeking && w.passed && !w.at.Last:
		if next, more = w.at.restart(); !more {
			return nil, false, notACursor("has lost its place, because all items around it have been deleted")
		}
		w.at = *next
		w.seek()
		return next, w.pages < maxPages, nil
	case pg.Next == "":
		return nil, false, nil
	case w.seeking || len(w.items) == 0:
		*next = w.at
		next.Cursor, next.Seek = pg.Next, w.seeking
	}
	return next, more, nil
}

// passes reports whether an item is behind the beginning of the page and not on it yet.
func (w *walk) passes(item []byte) bool {
	if w.met == nil {
		return true
	}
	m := markOf(item)
	if w.seeking {
		w.seeking, w.passed = !w.met[m] && !w.after[m], true
	}
	if w.seeking || w.met[m] {
		return false
	}
	w.met[m] = true
	return true
}

// take adds an item to the page. It does not retain the platform's page if it takes only parts of it.
func (w *walk) take(item []byte) {
	if w.shows != nil {
		item = bytes.Clone(item)
	}
	w.items, w.bytes = append(w.items, item), w.bytes+len(item)
}

// shown reports which items the caller may see, nil for all of them.
func (w *walk) shown(ctx context.Context, items [][]byte) ([]bool, error) {
	if w.shows == nil {
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
	return w.shows(ctx, records)
}

// answer makes the caller's page the body of the answer.
func (w *walk) answer(ex *Exchange, next *position) (err error) {
	cursor := ""
	if next != nil {
		if cursor, err = w.sealed.close(next); err != nil {
			return err
		}
	}
	ex.answerList(w.first.With(w.items, cursor))
	return nil
}
