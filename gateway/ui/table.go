package ui

import (
	"cmp"
	"slices"
	"strings"
)

// table is a data table: template "table".
type table struct {
	paging

	// Name identifies the table on its page and consists of letters. Caption describes the table for screen readers.
	Name, Caption string
	Columns       []columnHead
	Rows          []tableRow
	// Choices are the columns that can be shown and hidden. If empty, all columns are shown. Hidden holds the hidden fields of the form
	// that selects columns.
	Choices []choice
	Hidden  []hiddenField
	// Empty is the empty state of the table.
	Empty empty
	// Live is the address of the event stream with new rows. It may be empty. Blank is the row that the script copies for a new row.
	Live  string
	Blank *tableRow
}

// columnHead is the header of a column.
type columnHead struct {
	Title string
	// Number aligns the column to the right.
	Number bool
	// Sort links to the table sorted by the column. It is empty if the column cannot be sorted. Order is "ascending" or "descending" if the
	// table is sorted by the column.
	Sort, Order string
}

// tableRow is a row. Its first cell is a header cell.
type tableRow struct {
	// Group is the header of a group of rows that starts with this row, across Span columns. It is nil for other rows.
	Group *cell
	Span  int
	// Path links to the page of the row. It may be empty.
	Path string
	// Muted marks a less important row.
	Muted bool
	Cells []cell
}

// cell is a value in a table or in a list of facts. Its non-zero fields are shown in the order of declaration.
type cell struct {
	// Head is the title of the column. Number aligns the cell to the right. Key is the key of the column if the table marks cells. The
	// table sets these fields.
	Head   string
	Number bool
	Key    string

	Status *status
	Text   string
	// Path makes the text a link.
	Path string
	// Code shows the text in a fixed-width font.
	Code bool
	When *when
	Bar  *bar
	// Share shows a fraction of the column from 0 to 1 as a bar.
	Share *share
	Spark *spark
	// Change is the difference from an earlier value.
	Change *change
	// Clamp limits the text to two lines. The full text becomes the title attribute.
	Clamp bool
	// Sub is a second line.
	Sub string
	// Lines are further lines.
	Lines []string
	// Details is a long text that is shown on demand. Menu is the title of the control.
	Details string
	// Forms and Links are the actions of the row. If Menu is set, the forms are in a menu with this title.
	Forms []form
	Links []button
	Menu  string
}

// share shows a fraction of a whole as a bar.
type share struct{ Width, Text string }

// shareOf returns the share for a fraction n.
func shareOf(n float64) *share { return &share{coordinate(100 * min(1, max(0, n))), percent(n)} }

// choice is a column that can be shown or hidden.
type choice struct {
	Key, Title string
	On         bool
}

// column describes a column of a table of T.
type column[T any] struct {
	// Key is the name of the column in the address.
	Key, Title string
	// Number aligns the column to the right.
	Number bool
	// Off hides the column unless the address selects it.
	Off bool
	// Value returns the value of a row: a string, dollars, an int64, a time.Time or a *time.Time. Cell returns a cell that is shown instead of
	// the value.
	Value func(x *T) any
	Cell  func(x *T) cell
	// Sort reports that the rows can be sorted by the value. Param is the sort parameter of an endpoint that sorts the rows instead, in
	// descending order if the column is a number or Down is set.
	Sort  bool
	Param string
	Down  bool
}

// dollars is a decimal amount of the API in USD.
type dollars string

// compareValues compares two values of a column.
func compareValues(a, b any) int {
	switch first := a.(type) {
	case string:
		second, _ := b.(string)
		return strings.Compare(first, second)
	case dollars:
		second, _ := b.(dollars)
		return cmp.Compare(decimal(string(first)), decimal(string(second)))
	case int64:
		second, _ := b.(int64)
		return cmp.Compare(first, second)
	}
	first, _ := timeOf(a)
	second, _ := timeOf(b)
	return first.Compare(second)
}

// show returns the cell of a row.
func (c *column[T]) show(v *visit, x *T) cell {
	if c.Cell != nil {
		return c.Cell(x)
	}
	switch value := c.Value(x).(type) {
	case string:
		return textCell(value)
	case dollars:
		return textCell(amount(string(value)))
	case int64:
		return textCell(count(value))
	default:
		return v.whenCell(value)
	}
}

// tableSpec describes a table of T.
type tableSpec[T any] struct {
	Name, Caption string
	Columns       []column[T]
	// Path returns the address of a row's page. A nil Path means that rows have no pages.
	Path func(x *T) string
	// Muted reports whether a row is less important. It may be nil.
	Muted func(x *T) bool
	// Group returns the ID and the header of a row's group. Consecutive rows with the same ID form a group. A nil Group means no groups.
	Group func(x *T) (id string, head cell)
	// Whole reports that the rows are the complete list, which newTable sorts and paginates. Otherwise Next and Prev are the addresses of
	// other rows.
	Whole      bool
	Next, Prev string
	// Order is the sort order of an address without the parameter sort. It may be empty.
	Order string
	Empty empty
	// Live is the address of the event stream with new rows of the table. It may be empty. Keyed marks cells with the keys of their columns
	// for the script and the stylesheet.
	Live  string
	Keyed bool
}

// newTable returns a table of rows. The page parameter cols selects its columns. The page parameter sort is the key of the column to sort
// by; a minus sign before the key selects descending order.
func newTable[T any](v *visit, rows []T, spec tableSpec[T]) table {
	t := table{Name: spec.Name, Caption: spec.Caption, paging: paging{Prev: spec.Prev, Next: spec.Next}, Empty: spec.Empty}
	chosen := v.r.URL.Query()["cols"]
	var columns []column[T]
	for _, c := range spec.Columns {
		on := len(chosen) == 0 && !c.Off || slices.Contains(chosen, c.Key)
		if c.Key != "" {
			t.Choices = append(t.Choices, choice{c.Key, c.Title, on})
		}
		if on || c.Key == "" {
			columns = append(columns, c)
		}
	}
	if !slices.ContainsFunc(spec.Columns, func(c column[T]) bool { return c.Off }) {
		t.Choices = nil
	}
	t.Hidden = v.Kept("cols")
	order := sortOf(cmp.Or(v.Query("sort"), spec.Order))
	for _, c := range columns {
		t.Columns = append(t.Columns, headOf(v, c, order))
	}
	if spec.Whole {
		sortRows(rows, columns, order)
		rows, t.paging = cut(v, rows)
	}
	group := ""
	for i := range rows {
		r := rowOf(v, &rows[i], columns, &spec)
		if spec.Group != nil {
			if id, head := spec.Group(&rows[i]); i == 0 || id != group {
				group, r.Group, r.Span = id, &head, len(columns)
			}
		}
		t.Rows = append(t.Rows, r)
	}
	if spec.Live != "" {
		blank := rowOf(v, new(T), columns, &spec)
		t.Live, t.Blank = spec.Live, &blank
	}
	return t
}

// order is the sort order of a table.
type order struct {
	key  string
	down bool
}

func sortOf(parameter string) order {
	key, down := strings.CutPrefix(parameter, "-")
	return order{key, down}
}

// headOf returns the header of a column. Numbers are sorted in descending order first.
func headOf[T any](v *visit, c column[T], o order) columnHead {
	h := columnHead{Title: c.Title, Number: c.Number}
	key := cmp.Or(c.Param, c.Key)
	if !c.Sort && c.Param == "" {
		return h
	}
	next := key
	switch {
	case o.key == key && (o.down || c.Param != "" && (c.Number || c.Down)):
		h.Order = "descending"
	case o.key == key:
		h.Order = "ascending"
		if c.Param == "" {
			next = "-" + key
		}
	case c.Number && c.Param == "":
		next = "-" + key
	}
	h.Sort = v.With("sort", next, "page", "", "cursor", "")
	return h
}

func sortRows[T any](rows []T, columns []column[T], o order) {
	i := slices.IndexFunc(columns, func(c column[T]) bool { return c.Key == o.key && c.Sort })
	if i < 0 {
		return
	}
	slices.SortStableFunc(rows, func(a, b T) int {
		if o.down {
			a, b = b, a
		}
		return compareValues(columns[i].Value(&a), columns[i].Value(&b))
	})
}

func rowOf[T any](v *visit, x *T, columns []column[T], spec *tableSpec[T]) (r tableRow) {
	if spec.Path != nil {
		r.Path = spec.Path(x)
	}
	r.Muted = spec.Muted != nil && spec.Muted(x)
	for i := range columns {
		c := &columns[i]
		value := c.show(v, x)
		value.Head, value.Number = c.Title, c.Number
		if spec.Keyed {
			value.Key = c.Key
		}
		r.Cells = append(r.Cells, value)
	}
	return r
}

// Constructors of cells.

// textCell returns a cell with a text and optional small print below it.
func textCell(text string, sub ...string) cell { return cell{Text: text, Sub: strings.Join(sub, ", ")} }

// codeCell returns a cell with an identifier.
func codeCell(text string) cell { return cell{Text: text, Code: true} }

// statusCell returns a cell with a state.
func statusCell(word any) cell { return cell{Status: new(statusOf(word))} }

// linkCell returns a cell with a link.
func linkCell(text, path string) cell { return cell{Text: text, Path: path} }

// whenCell returns a cell with a time. It is empty for a zero time.
func (v *visit) whenCell(t any) cell {
	if w := v.When(t); !w.At.IsZero() {
		return cell{When: &w}
	}
	return cell{}
}

// exactCell returns a cell with a date and time, and below it the time relative to now. It is empty for a zero time.
func (v *visit) exactCell(t any) cell {
	c := v.whenCell(t)
	if c.When != nil {
		c.Sub = c.When.Text()
		c.When.Full = true
	}
	return c
}
