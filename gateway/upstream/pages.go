package upstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Limits of a list that is read in pages.
const (
	maxPages = 1_000
	maxItems = 200_000
	// MaxList is the maximum total size of a list in bytes.
	MaxList = 64 << 20
)

// ErrPagination means that a list cannot be read completely, because its pagination is malformed or the list exceeds the limits.
var ErrPagination = errors.New("incomplete list")

// pagination returns the pagination member of a page. next is the cursor of the next page, or "" on the last
// page.
func pagination(next string) string {
	if next == "" {
		return `"pagination":{"nextCursor":null,"hasNextPage":false}`
	}
	return fmt.Sprintf(`"pagination":{"nextCursor":%q,"hasNextPage":true}`, next)
}

// lastPage ends a last page.
var lastPage = []byte("," + pagination("") + "}")

// Page is one page of a list (reference platform-v2-growth, section 1). Its parts are slices of the page's text.
type Page struct {
	// Items holds the text of each item. It is nil if the page has no list.
	Items [][]byte
	// Paged is true if the page has a pagination member. Next is the cursor of the next page, or "" on the last page. Last is true if the
	// pagination member says that this is the last page and contains no cursor.
	Paged, Last bool
	Next        string

	member string
	text   []byte
	names  []string // of the members read
	// others are the members other than the list and pagination, each followed by a comma.
	others []byte
}

// PageJoiner joins the pages of a list to one page with all items. Pages must be added in order. If several pages contain an item with the
// same ID, because resources were created or deleted in the meantime, the item is added only once. A platform without pagination returns
// the whole list as one page without a pagination member. A PageJoiner is not safe for concurrent use.
type PageJoiner struct {
	// Member is the name of the member that contains the list.
	Member string

	first Page
	items [][]byte // of all pages; nil while there is one page
	bytes int      // of items
	pages int
	ids   map[string]struct{}
	// cursors are the cursors followed so far.
	cursors map[string]struct{}
}

// Add adds the next page and returns the cursor of the following page, or "" if the list is complete. It retains text. All errors wrap
// [ErrUnreachable]. If the page can be parsed, errors also wrap [ErrPagination].
func (p *PageJoiner) Add(text []byte) (cursor string, err error) {
	pg, err := ReadPage(p.Member, text)
	if p.pages++; err == nil {
		err = p.follow(&pg)
	}
	if err != nil {
		return "", fmt.Errorf("%w: page %d: %w", ErrUnreachable, p.pages, err)
	}
	return pg.Next, nil
}

// malformed returns an ErrPagination with a reason.
func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrPagination, fmt.Sprintf(format, args...))
}

// follow takes the items of a page and checks the cursor of the next one.
func (p *PageJoiner) follow(pg *Page) error {
	if p.pages == 1 {
		if p.first = *pg; pg.Next == "" {
			return nil // the page is the whole list
		}
	}
	if err := pg.CheckSequence(p.pages); err != nil {
		return err
	}
	p.take(pg.Items)
	if p.cursors == nil {
		p.cursors = make(map[string]struct{})
	}
	_, known := p.cursors[pg.Next]
	switch {
	case known:
		return malformed("repeated cursor")
	case pg.Next != "" && p.pages == maxPages:
		return malformed("more than %d pages", maxPages)
	case len(p.items) > maxItems:
		return malformed("more than %d items", maxItems)
	case p.bytes > MaxList:
		return malformed("more than %d bytes", MaxList)
	case pg.Next != "":
		p.cursors[pg.Next] = struct{}{}
	}
	return nil
}

// CheckSequence returns an error if pg cannot be page number n of a list with several pages.
func (pg *Page) CheckSequence(n int) error {
	switch {
	case n > 1 && !pg.Paged:
		return malformed("pagination is missing")
	case pg.Items == nil:
		return malformed("list %q is missing", pg.member)
	}
	return nil
}

// take appends items that were not on an earlier page.
func (p *PageJoiner) take(items [][]byte) {
	if p.ids == nil {
		p.ids = make(map[string]struct{})
	}
	for _, item := range items {
		if id := ItemID(item); id != "" {
			if _, known := p.ids[id]; known {
				continue
			}
			p.ids[id] = struct{}{}
		}
		p.items, p.bytes = append(p.items, item), p.bytes+len(item)
	}
}

// ItemID returns the ID of an item. It returns "" if the item has no ID.
func ItemID(item []byte) string {
	var record struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(item, &record) != nil {
		return ""
	}
	return record.ID
}

// WholeList returns the text of a page with its pagination member if the text shows without parsing that the page is the whole rest of a
// list and has at most limit items, each of which is an object. The text must be valid JSON; WholeList does not check it.
func WholeList(list string, text []byte, limit int) (page []byte, ok bool) {
	if bytes.Count(text, []byte("{")) > limit || !bytes.HasPrefix(text, []byte(`{"`+list+`":[`)) {
		return nil, false
	}
	switch paginations := bytes.Count(text, []byte(`"pagination"`)); {
	case paginations == 1 && bytes.HasSuffix(text, lastPage):
		return text, true
	case paginations == 0 && bytes.HasSuffix(text, []byte("]}")):
		return slices.Concat(text[:len(text)-1], lastPage), true
	}
	return nil, false
}

// ReadPage parses a page. list is the name of the member that contains the list. The returned page retains text. Duplicate names are
// accepted in the values of members: the readers of items check them.
func ReadPage(list string, text []byte) (pg Page, err error) {
	pg.member, pg.text = list, text
	d := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true))
	if open, err := d.ReadToken(); err != nil || open.Kind() != '{' {
		return pg, errors.Join(errors.New("page is not a JSON object"), err)
	}
	for d.PeekKind() == '"' {
		if err := pg.readMember(d); err != nil {
			return pg, err
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return pg, err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return pg, errors.Join(errors.New("page has data after the JSON object"), err)
	}
	return pg, nil
}

// readMember reads the next member of the page.
func (pg *Page) readMember(d *jsontext.Decoder) error {
	from := d.InputOffset()
	name, err := d.ReadToken()
	if err != nil {
		return err
	}
	member := name.String()
	if slices.Contains(pg.names, member) {
		return fmt.Errorf("duplicate member %q", member)
	}
	if pg.names = append(pg.names, member); member == pg.member && d.PeekKind() == '[' {
		return pg.readItems(d)
	}
	value, err := d.ReadValue()
	switch {
	case err != nil:
		return err
	case member == "pagination":
		return pg.paginate(value)
	}
	other := bytes.TrimLeft(pg.text[from:d.InputOffset()], ", \t\r\n")
	pg.others = append(append(pg.others, other...), ',')
	return nil
}

// readItems reads the list.
func (pg *Page) readItems(d *jsontext.Decoder) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for pg.Items = [][]byte{}; d.PeekKind() != ']'; {
		item, err := d.ReadValue()
		if err != nil {
			return err
		}
		if pg.Items = append(pg.Items, item); len(pg.Items) > maxItems {
			return malformed("more than %d items", maxItems)
		}
	}
	_, err := d.ReadToken()
	return err
}

// paginate sets the position of the page in the list to the value of the pagination member.
func (pg *Page) paginate(value []byte) error {
	var pagination struct {
		NextCursor  *string `json:"nextCursor"`
		HasNextPage *bool   `json:"hasNextPage"`
	}
	pg.Paged = true
	switch err := json.Unmarshal(value, &pagination); {
	case err != nil:
		return malformed("pagination: %v", err)
	case pagination.HasNextPage == nil:
		return malformed("pagination does not contain hasNextPage")
	case *pagination.HasNextPage && (pagination.NextCursor == nil || *pagination.NextCursor == ""):
		return malformed("pagination has a next page, but nextCursor is missing")
	case *pagination.HasNextPage:
		pg.Next = *pagination.NextCursor
	}
	pg.Last = pagination.NextCursor == nil
	return nil
}

// Join returns the whole list as one page. All other members are copied from the first page. If paginate is true, the page has a pagination
// member even if the platform did not send one.
func (p *PageJoiner) Join(paginate bool) []byte {
	pg := &p.first
	switch {
	case p.pages > 1:
		return pg.WithItems(p.items, "")
	case !paginate || pg.Paged || pg.Items == nil:
		return pg.text
	}
	return pg.WithItems(pg.Items, "")
}

// WithItems returns the text of a page that contains the given items and all other members of pg. next is the cursor of the following page,
// or "" for the last page.
func (pg *Page) WithItems(items [][]byte, next string) []byte {
	size := len(pg.member) + len(pg.others) + len(pagination(next)) + len(`{"":[],}`)
	for _, item := range items {
		size += len(item) + len(`,`)
	}
	text := append(make([]byte, 0, size), `{"`+pg.member+`":[`...)
	for i, item := range items {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, item...)
	}
	text = append(append(text, `],`...), pg.others...)
	return append(append(text, pagination(next)...), '}')
}
