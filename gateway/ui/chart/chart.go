package chart

import (
	"bytes"
	_ "embed"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind is how the values of a chart are drawn.
type Kind int

const (
	// Bars stacks the series of each bucket.
	Bars Kind = iota
	// Lines draws each series as a line that is interrupted where data is missing.
	Lines
)

// MaxSeries is the number of series with a colour of their own; see [Fold].
const MaxSeries = 8

// MaxBuckets is the number of buckets that a chart shows. Older buckets are left out, and the chart says how many.
const MaxBuckets = 400

// Chart is a chart over time. The zero value draws an empty state.
type Chart struct {
	// ID is unique among the charts of a page, and valid in the id attribute of an element.
	ID string
	// Title names the values, such as "Cost by team".
	Title string
	Kind  Kind
	Unit  Unit
	// Per names the length of a bucket in the unit's label, such as "day"; "" adds nothing.
	Per string
	// Zone is the time zone of labels; nil is UTC.
	Zone *time.Location
	// Buckets are in order of time, all of about the same length.
	Buckets []Bucket
	Series  []Series
	// Previous has the totals of the previous period by bucket; nil for none.
	Previous []float64
	// Forecast has the expected total of each bucket, and NaN for buckets without a forecast; nil for none.
	Forecast []float64
	// Limit is drawn as a line across the chart; nil for none.
	Limit *Limit
	// Height is the height of the plot in pixels; 0 is 200.
	Height int
	// Total adds the sum of the series to readouts and to the table.
	Total bool
	// Empty is shown in place of a chart without buckets.
	Empty string
}

// Bucket is an interval of time.
type Bucket struct {
	Start time.Time
	// Length is its length; for months, 28 days or more.
	Length time.Duration
	// Href leads to the details of the bucket; "" for none.
	Href string
}

// Series are values by bucket. NaN is a missing value.
type Series struct {
	Name   string
	Values []float64
	// Class is the colour's class; "" takes the next of series-1 to series-8.
	Class string
}

// Limit is a labelled line, such as a budget.
type Limit struct {
	Name  string
	Value float64
}

// Sum returns the sum of the values that are not missing.
func (s *Series) Sum() (sum float64) {
	for _, v := range s.Values {
		if present(v) {
			sum += v
		}
	}
	return sum
}

// Fold keeps the largest series, at most n, the largest first. The others become one series, the last, which other names from their number.
func Fold(list []Series, n int, other func(count int) string) []Series {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b Series) int {
		switch x, y := a.Sum(), b.Sum(); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	if len(list) <= n {
		return list
	}
	rest := Series{Name: other(len(list) - n + 1), Class: "series-other"}
	for _, s := range list[n-1:] {
		for i, v := range s.Values {
			if i == len(rest.Values) {
				rest.Values = append(rest.Values, math.NaN())
			}
			if present(v) {
				rest.Values[i] = v + max(0, orZero(rest.Values[i]))
			}
		}
	}
	return append(list[:n-1:n-1], rest)
}

// present reports whether a value is not missing.
func present(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func orZero(v float64) float64 {
	if !present(v) {
		return 0
	}
	return v
}

// at returns a value of a list, NaN beyond its end.
func at(list []float64, i int) float64 {
	if i < len(list) {
		return list[i]
	}
	return math.NaN()
}

//go:embed chart.html
var source string

//nolint:gochecknoglobals // parsed once, from an embedded file
var page = template.Must(template.New("chart").Parse(source))

// HTML returns the chart as a figure with its data table.
func (c Chart) HTML() template.HTML {
	if len(c.Buckets) == 0 {
		return execute("empty", c)
	}
	return execute("chart", c.layout())
}

func execute(name string, data any) template.HTML {
	var out bytes.Buffer
	if err := page.ExecuteTemplate(&out, name, data); err != nil {
		panic(err) // the template and its data are ours
	}
	return template.HTML(out.String()) //nolint:gosec // html/template has escaped it
}

// number writes a coordinate.
func number(v float64) string {
	text := strconv.FormatFloat(v, 'f', 2, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
