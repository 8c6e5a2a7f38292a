package ui

// listing is a page that is a list: a form of filters, those that are set, and a table. Its template is "listing".
type listing struct {
	// About is the header of the page; the zero value has the page's title alone.
	About   head
	Filters *form
	Chips   []chip
	Notes   []note
	Table   table
	// Hint is a sentence under the table.
	Hint string
}

// Head implements headed.
func (l listing) Head(*frame) head { return l.About }

// filtered returns a listing with filters.
func (v *visit) filtered(fields ...field) listing {
	f := v.filters(fields...)
	return listing{Filters: &f, Chips: v.chips(f)}
}

// empty returns what is shown in the place of an empty list: otherwise or, where filters are set, a way to remove them.
func (l *listing) empty(v *visit, otherwise empty) empty {
	if len(l.Chips) == 0 {
		return otherwise
	}
	return empty{Icon: "filter", Title: "No matches", Text: "Nothing in this list matches the filters.", Next: &button{Title: "Clear filters", Path: v.Path()}}
}

// older returns the address of older entries, whose parameter before or cursor is next; "" for none.
func (v *visit) older(parameter, next string) string {
	if next == "" {
		return ""
	}
	return v.With(parameter, next)
}

// newest returns the address of the newest entries, "" on their page.
func (v *visit) newest(parameter string) string {
	if v.Query(parameter) == "" {
		return ""
	}
	return v.With(parameter, "")
}
