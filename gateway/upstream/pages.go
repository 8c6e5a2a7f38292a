package upstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The bounds of a list that is read in pages.
const (
	maxPages = 1_000
	maxItems = 200_000
	// MaxList bounds a list, in bytes.
	MaxList = 64 << 20
)

// ErrPages means that the pagination of a list is malformed, or that the list exceeds the
// bounds, so that the whole list is unknown.
var ErrPages = errors.New("the list cannot be read to its end")

// noMorePages is the pagination member of a whole list.
const noMorePages = `"pagination":{"nextCursor":null,"hasNextPage":false}`

// Pages joins the pages of a list (reference platform-v2-growth, section 1). Each page is
// added in order; the result is one page that has all items and is the last. The platform may
// create and delete resources between two pages, so that an item can appear on both: it is
// taken once, by its id. A platform that does not page returns the whole list as one page
// without a pagination member. Pages is not safe for concurrent use.
type Pages struct {
	// Member is the member of a page that is the list.
	Member string

	first page
	items []byte // of all pages, separated by commas; nil while there is one page
	count int    // of items and, in pages, of pages
	pages int
	ids   map[string]struct{}
	// cursors are those followed so far.
	cursors map[string]struct{}
}

// page is one page. Its parts are slices of text.
type page struct {
	text, list []byte
	// others are the members besides the list and pagination, each with a comma behind it.
	others []byte
	// end is the offset of the closing brace.
	end int
	// paged says that the page has a pagination member. next is its cursor, "" on the last page.
	paged bool
	next  string
}

// Add adds the next page, which it retains, and returns the cursor of the page after it, "" if
// the list is complete. Errors are ErrUnreachable, and ErrPages where the page itself is
// readable.
func (p *Pages) Add(text []byte) (cursor string, err error) {
	pg, err := p.read(text)
	if p.pages++; err == nil {
		err = p.follow(&pg)
	}
	if err != nil {
		return "", fmt.Errorf("%w: page %d: %w", ErrUnreachable, p.pages, err)
	}
	return pg.next, nil
}

// malformed is an ErrPages with its reason.
func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrPages, fmt.Sprintf(format, args...))
}

// follow takes the items of a page and checks the cursor of the next one.
func (p *Pages) follow(pg *page) error {
	switch {
	case p.pages == 1:
		if p.first = *pg; pg.next == "" {
			return nil // the page is the list
		}
	case !pg.paged:
		return malformed("no pagination")
	}
	if pg.list == nil {
		return malformed("no list %q", p.Member)
	}
	if err := p.take(pg.list); err != nil {
		return err
	}
	if p.cursors == nil {
		p.cursors = make(map[string]struct{})
	}
	_, known := p.cursors[pg.next]
	switch {
	case known:
		return malformed("the cursor is that of an earlier page")
	case pg.next != "" && p.pages == maxPages:
		return malformed("more than %d pages", maxPages)
	case p.count > maxItems:
		return malformed("more than %d items", maxItems)
	case len(p.items) > MaxList:
		return malformed("more than %d bytes", MaxList)
	case pg.next != "":
		p.cursors[pg.next] = struct{}{}
	}
	return nil
}

// take appends the items of a list that were not on an earlier page.
func (p *Pages) take(list []byte) error {
	if p.ids == nil {
		p.ids = make(map[string]struct{})
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(list))
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != ']' {
		item, err := d.ReadValue()
		if err != nil {
			return err
		}
		var record struct {
			ID string `json:"id"`
		}
		if json.Unmarshal(item, &record) == nil && record.ID != "" {
			if _, known := p.ids[record.ID]; known {
				continue
			}
			p.ids[record.ID] = struct{}{}
		}
		if len(p.items) > 0 {
			p.items = append(p.items, ',')
		}
		p.items = append(p.items, item...)
		p.count++
	}
	return nil
}

// read finds the parts of a page.
func (p *Pages) read(text []byte) (pg page, err error) {
	pg.text = text
	d := jsontext.NewDecoder(bytes.NewBuffer(text))
	if open, err := d.ReadToken(); err != nil || open.Kind() != '{' {
		return pg, errors.Join(errors.New("the page is not an object"), err)
	}
	for d.PeekKind() == '"' {
		from := d.InputOffset()
		name, err := d.ReadToken()
		if err != nil {
			return pg, err
		}
		member := name.String()
		value, err := d.ReadValue()
		switch {
		case err != nil:
			return pg, err
		case member == p.Member && value.Kind() == '[':
			pg.list = value
		case member == "pagination":
			pg.paged = true
			if pg.next, err = next(value); err != nil {
				return pg, err
			}
		default:
			other := bytes.TrimLeft(text[from:d.InputOffset()], ", \t\r\n")
			pg.others = append(append(pg.others, other...), ',')
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return pg, err
	}
	pg.end = int(d.InputOffset()) - 1
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return pg, errors.Join(errors.New("the page has text behind its object"), err)
	}
	return pg, nil
}

// next reads the pagination member of a page.
func next(value []byte) (cursor string, err error) {
	var pagination struct {
		NextCursor  *string `json:"nextCursor"`
		HasNextPage *bool   `json:"hasNextPage"`
	}
	switch err := json.Unmarshal(value, &pagination); {
	case err != nil:
		return "", malformed("pagination: %v", err)
	case pagination.HasNextPage == nil:
		return "", malformed("pagination has no hasNextPage")
	case !*pagination.HasNextPage:
		return "", nil
	case pagination.NextCursor == nil || *pagination.NextCursor == "":
		return "", malformed("pagination has a next page and no cursor")
	}
	return *pagination.NextCursor, nil
}

// Whole returns the list as one page. Members besides the list are those of the first page.
// paginate adds the pagination member to the list of a platform that does not page.
func (p *Pages) Whole(paginate bool) []byte {
	pg := &p.first
	if p.pages > 1 {
		size := len(p.Member) + len(p.items) + len(pg.others) + len(noMorePages) + len(`{"":[],}`)
		text := append(make([]byte, 0, size), `{"`+p.Member+`":[`...)
		text = append(append(text, p.items...), `],`...)
		text = append(text, pg.others...)
		return append(append(text, noMorePages...), '}')
	}
	if !paginate || pg.paged || pg.list == nil {
		return pg.text
	}
	text := append(make([]byte, 0, pg.end+len(noMorePages)+len(`,}`)), pg.text[:pg.end]...)
	return append(append(append(text, ','), noMorePages...), '}')
}
