package chart

import (
	"bytes"
	_ "embed"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"
)

// MaxSeries is the maximum number of series with distinct colours.
const MaxSeries = 8

// MaxBuckets is the maximum number of buckets in a chart. Older buckets are dropped, and the chart shows their number.
const MaxBuckets = 400

// Chart is a time-series chart. The zero value draws an empty state.
type Chart struct {
	// ID must be unique on the page and valid as the id attribute of an element.
	ID string
	// Title describes the values, such as "Cost by team".
	Title string
	Unit  Unit
	// Per is the bucket length in the unit label, such as "day". If empty, the label has no bucket length.
	Per string
	// Zone is the time zone of labels. A nil Zone means UTC.
	Zone *time.Location
	// Now is the end of the recorded values. The bucket that contains Now is incomplete and shows no change. If Now is zero, all buckets are
	// complete.
	Now time.Time
	// From and To are the range of the values. A bucket that is partly outside the range shows no change, too. The zero time means
	// no bound.
	From, To time.Time
	// Buckets are in chronological order and have about equal lengths.
	Buckets []Bucket
	Series  []Series
	// Previous holds the totals of the previous period by bucket. It may be nil.
	Previous []float64
	// Forecast holds the expected total of each bucket, or NaN if a bucket has no forecast. It may be nil.
	Forecast []float64
	// Limit is drawn as a line across the chart. It may be nil.
	Limit *Limit
	// Height is the height of the plot in pixels. If it is zero, 200 is used.
	Height int
	// Total adds the sum of the series to readouts and to the table.
	Total bool
	// Empty is the text shown for a chart without buckets.
	Empty string
}

// Bucket is an interval of time.
type Bucket struct {
	Start time.Time
	// Length is the length of the bucket. Months are 28 days or longer.
	Length time.Duration
	// Href links to the details of the bucket. It may be empty.
	Href string
}

// Series holds one value per bucket. NaN marks a missing value.
type Series struct {
	Name   string
	Values []float64
	// Class is the CSS class of the colour. If empty, the next class from series-1 to series-8 is used.
	Class string
}

// Limit is a labelled line, such as a budget.
type Limit struct {
	Name  string
	Value float64
}

// Sum returns the sum of all values that are not missing.
func (s *Series) Sum() (sum float64) {
	for _, v := range s.Values {
		if present(v) {
			sum += v
		}
	}
	return sum
}

// present reports whether v is neither NaN nor infinite.
func present(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func orZero(v float64) float64 {
	if !present(v) {
		return 0
	}
	return v
}

// at returns list[i], or NaN if i is out of range.
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

// number formats a coordinate.
func number(v float64) string {
	text := strconv.FormatFloat(v, 'f', 2, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
