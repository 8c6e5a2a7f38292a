package ui

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"
)

// table is a data table: template "table".
type table struct {
	// Name identifies the table on its page: letters alone. Caption describes it for screen readers.
	Name, Caption string
	Columns       []columnHead
	Rows          []tableRow
	// Choices are the columns that can be shown and hidden, none for a table that shows all, and Hidden the fields of the form that chooses.
	Choices []choice
	Hidden  []hiddenField
	// Shown describes which rows are on the page, such as "1–100 of 250". Prev and Next lead to others, "" for none.
	Shown, Prev, Next string
	// Empty is shown in the place of a table without rows.
	Empty empty
	// Live is where the script reads further rows, "" for a table without any. Blank is the row that it copies.
	Live  string
	Blank *tableRow
}

// columnHead is the head of a column.
type columnHead struct {
	Title string
	// Number aligns the column right.
	Number bool
	// Sort leads to the table in the order of the column, "" for a column without an order. Order is "ascending" or "descending" where the
	// table is in that order.
	Sort, Order string
}

// tableRow is a row. The first cell is its header.
type tableRow struct {
	// Path leads to the page of the row, "" for none.
	Path string
	// Muted marks a row of less interest.
	Muted bool
	Cells []cell
}

// cell is a value in a table or a list of facts. What is set is shown, in the order of the fields.
type cell struct {
	// Head is the title of the column, Number its alignment and Key its key if the table marks cells. The table sets them.
	Head   string
	Number bool
	Key    string

	Status *status
	Text   string
	// Path makes the text a link.
	Path string
	// Code shows the text in a font of fixed width.
	Code bool
	When *when
	Bar  *bar
	// Share is a bar behind a share of the column, 0 to 1.
	Share *share
	Spark *spark
	// Change is the difference from an earlier figure.
	Change *change
	// Clamp bounds the text to two lines; the whole is its title.
	Clamp bool
	// Sub is a second line.
	Sub string
	// Lines are further lines.
	Lines []string
	// Details is a long text that is shown on demand, under the title Menu.
	Details string
	// Forms and Links are the row's actions. Menu shows the forms in a menu of that title.
	Forms []form
	Links []button
	Menu  string
}

// share is a share of a whole as a bar.
type share struct{ Width, Text string }

// shareOf returns a share of 1.
func shareOf(n float64) *share { return &share{coordinate(100 * min(1, max(0, n))), percent(n)} }

// choice is a column that can be shown or hidden.
type choice struct {
	Key, Title string
	On         bool
}

// column describes a column of a table of T.
type column[T any] struct {
	// Key names the column in the address.
	Key, Title string
	Number     bool
	// Off hides the column unless the address names it.
	Off bool
	// Compare orders rows by the column; nil for none. Param is the order's name for the row of the API, which sorts instead.
	Compare func(a, b *T) int
	Param   string
	Cell    func(x *T) cell
}

// tableSpec describes a table of T.
type tableSpec[T any] struct {
	Name, Caption string
	Columns       []column[T]
	// Path returns the address of a row's page; nil for rows without one.
	Path func(x *T) string
	// Muted reports whether a row is of less interest; nil for none.
	Muted func(x *T) bool
	// Whole says that the rows are all there are: they are sorted and cut here. Otherwise Next and Prev are the addresses of other rows.
	Whole      bool
	Next, Prev string
	Empty      empty
	// Live is where the script reads further rows of the table; "" for none. Keyed marks cells with the keys of their columns, for the
	// script and for the stylesheet.
	Live  string
	Keyed bool
}

// newTable returns a table of some rows. The parameter cols of the page chooses its columns, and sort its order: the key of a column, after
// a minus sign from the greatest to the smallest.
func newTable[T any](v *visit, rows []T, spec tableSpec[T]) table {
	t := table{Name: spec.Name, Caption: spec.Caption, Next: spec.Next, Prev: spec.Prev, Empty: spec.Empty}
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
	order := sortOf(v.r.URL.Query())
	for _, c := range columns {
		t.Columns = append(t.Columns, headOf(v, c, order))
	}
	if spec.Whole {
		sortRows(rows, columns, order)
		e := cut(v, rows)
		rows, t.Shown = e.Rows, e.Shown()
		t.Prev, t.Next = pageLink(v, e.Before), pageLink(v, e.After)
	}
	for i := range rows {
		t.Rows = append(t.Rows, rowOf(&rows[i], columns, &spec))
	}
	if spec.Live != "" {
		blank := rowOf(new(T), columns, &spec)
		t.Live, t.Blank = spec.Live, &blank
	}
	return t
}

// order is the order of a table.
type order struct {
	key  string
	down bool
}

func sortOf(q url.Values) order {
	key, down := strings.CutPrefix(q.Get("sort"), "-")
	return order{key, down}
}

// headOf returns the head of a column. Numbers are sorted from the greatest first.
func headOf[T any](v *visit, c column[T], o order) columnHead {
	h := columnHead{Title: c.Title, Number: c.Number}
	key := cmp.Or(c.Param, c.Key)
	if c.Compare == nil && c.Param == "" {
		return h
	}
	next := key
	switch {
	case o.key == key && o.down:
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
	i := slices.IndexFunc(columns, func(c column[T]) bool { return c.Key == o.key && c.Compare != nil })
	if i < 0 {
		return
	}
	slices.SortStableFunc(rows, func(a, b T) int {
		if o.down {
			a, b = b, a
		}
		return columns[i].Compare(&a, &b)
	})
}

func rowOf[T any](x *T, columns []column[T], spec *tableSpec[T]) (r tableRow) {
	if spec.Path != nil {
		r.Path = spec.Path(x)
	}
	r.Muted = spec.Muted != nil && spec.Muted(x)
	for _, c := range columns {
		value := c.Cell(x)
		value.Head, value.Number = c.Title, c.Number
		if spec.Keyed {
			value.Key = c.Key
		}
		r.Cells = append(r.Cells, value)
	}
	return r
}

// pageLink returns the address of a part of a list, "" for none.
func pageLink(v *visit, page string) string {
	if page == "" {
		return ""
	}
	return v.With("page", page)
}

// Constructors of cells.

// textCell is a text; small print goes under it.
func textCell(text string, sub ...string) cell { return cell{Text: text, Sub: strings.Join(sub, ", ")} }

// codeCell is an identifier.
func codeCell(text string) cell { return cell{Text: text, Code: true} }

// statusCell is a state.
func statusCell(word any) cell {
	s := statusOf(word)
	return cell{Status: &s}
}

// linkCell is a link.
func linkCell(text, path string) cell { return cell{Text: text, Path: path} }

// whenCell is a time, empty for none.
func (v *visit) whenCell(t any) cell {
	if w := v.When(t); !w.At.IsZero() {
		return cell{When: &w}
	}
	return cell{}
}

// byText and the following order rows by a part of them, for columns.
func byText[T any](of func(*T) string) func(a, b *T) int {
	return func(a, b *T) int { return strings.Compare(of(a), of(b)) }
}

// byAmount orders rows by a decimal of the API.
func byAmount[T any](of func(*T) string) func(a, b *T) int {
	return func(a, b *T) int { return cmp.Compare(decimal(of(a)), decimal(of(b))) }
}

// byTime orders rows by a time.
func byTime[T any](of func(*T) time.Time) func(a, b *T) int {
	return func(a, b *T) int { return of(a).Compare(of(b)) }
}
