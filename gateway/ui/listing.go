package ui

// listing is a page with tiles, a form of filters, the active filters, and a table: template "listing". A page whose entries could not be
// read shows neither tiles nor a table.
type listing struct {
	head

	// Tiles are metrics of the list.
	Tiles   []tile
	Filters *form
	Chips   []chip
	Notes   []note
	Table   table
	// Hint is a sentence below the table.
	Hint string
}

// filtered returns a listing with filters.
func (v *visit) filtered(fields ...field) listing {
	f := v.filters(fields...)
	return listing{Filters: &f, Chips: v.chips(f)}
}

// empty returns the empty state of the list. It is unfiltered if no filter is active, and otherwise has a link that removes the filters.
func (l *listing) empty(v *visit, unfiltered empty) empty {
	if len(l.Chips) == 0 {
		return unfiltered
	}
	return empty{
		Icon: "filter", Title: "No matches", Text: "Nothing in this list matches the filters.",
		Next: &button{Title: "Clear filters", Path: v.Link(v.Path()[len(v.path):])},
	}
}

// olderChip adds a chip to a list of requests that does not begin with the newest requests.
func (l *listing) olderChip(v *visit) {
	if v.Query("before") != "" {
		l.Chips = append(l.Chips, chip{"Older requests", "", v.With("before", "")})
	}
}

// searchOlder adds a link to older requests to a list without requests, if only the newest requests were searched.
func (l *listing) searchOlder() {
	if len(l.Table.Rows) == 0 && l.Table.Next != "" {
		l.Table.Empty.Next = &button{Title: "Search older requests", Path: l.Table.Next}
	}
}

// older returns the address of other entries, given the parameter for the position and its value, or "" if the value is empty.
func (v *visit) older(parameter, next string) string {
	if next == "" {
		return ""
	}
	return v.With(parameter, next)
}

// newest returns the address of the newest entries, or "" if this page shows the newest entries.
func (v *visit) newest(parameter string) string {
	if v.Query(parameter) == "" {
		return ""
	}
	return v.With(parameter, "")
}
