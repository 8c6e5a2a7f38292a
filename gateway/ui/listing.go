package ui

// listing is a page with a form of filters, the active filters, and a table: template "listing".
type listing struct {
	// About is the header of the page. The zero value shows only the page title.
	About   head
	Filters *form
	Chips   []chip
	Notes   []note
	Table   table
	// Hint is a sentence below the table.
	Hint string
}

// Head implements headed.
func (l listing) Head(*frame) head { return l.About }

// filtered returns a listing with filters.
func (v *visit) filtered(fields ...field) listing {
	f := v.filters(fields...)
	return listing{Filters: &f, Chips: v.chips(f)}
}

// empty returns the empty state of the list: otherwise or, if filters are active, a link that removes them.
func (l *listing) empty(v *visit, otherwise empty) empty {
	if len(l.Chips) == 0 {
		return otherwise
	}
	return empty{
		Icon: "filter", Title: "No matches", Text: "Nothing in this list matches the filters.",
		Next: &button{Title: "Clear filters", Path: v.Link(v.Path()[len(v.path):])},
	}
}

// older returns the address of older entries with the given cursor parameter, or "" if next is empty.
func (v *visit) older(parameter, next string) string {
	if next == "" {
		return ""
	}
	return v.With(parameter, next)
}

// newest returns the address of the newest entries, or "" on their own page.
func (v *visit) newest(parameter string) string {
	if v.Query(parameter) == "" {
		return ""
	}
	return v.With(parameter, "")
}
