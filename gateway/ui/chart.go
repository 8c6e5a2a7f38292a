package ui

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/money"
)

// Measures of a chart, in units of its own.
const (
	chartWidth  = 800
	chartHeight = 200
	// maxSeries is how many groups have a colour of their own; the last is all others.
	maxSeries = 8
)

// chart is columns of costs over time, each a stack of groups.
type chart struct {
	Columns []chartColumn
	Series  []string
	// Top is the height of the scale, in USD.
	Top           float64
	Width, Height int
	// Left is how many columns are left out, the oldest.
	Left int
	// Before is the line of the time before, as points, "" for none.
	Before string
	// Forecast is the likely growth of the last bucket, nil for none.
	Forecast *box
}

// chartColumn is the costs of one bucket.
type chartColumn struct {
	Label  string
	Total  float64
	Before float64 // the total of the bucket at this place in the time before
	Series []float64
	Boxes  []box
	// expected is the likely total of the bucket, 0 for no more than it has.
	expected float64
}

// box is the costs of one group in a chartColumn, as a rectangle.
type box struct {
	// Series is the number of the group among the colours.
	Series              int
	Title               string
	X, Y, Width, Height string
}

// newChart draws costs. The groups are sorted, the dearest first.
func newChart(costs *money.Costs, by string, groups []sum) chart {
	c := chart{Width: chartWidth, Height: chartHeight}
	series := make(map[string]int, len(groups))
	for i, g := range groups {
		n := min(i, maxSeries-1)
		series[g.Name] = n
		if n == len(c.Series) {
			c.Series = append(c.Series, g.Name)
		}
	}
	if len(groups) > maxSeries {
		c.Series[maxSeries-1] = "all others"
	}
	cells := bucketsOf(costs)
	at := make(map[string]int, len(cells))
	for n := range cells {
		at[cells[n].label] = n
	}
	for i := range costs.Rows {
		r := &costs.Rows[i]
		cells[at[labelOf(r)]].usd[series[groupOf(r, by)]] += decimal(r.USD)
	}
	for _, x := range cells {
		c.Columns = append(c.Columns, chartColumn{Label: x.label, Total: total(x.usd[:]), Series: x.usd[:len(c.Series)]})
	}
	if n := len(c.Columns) - maxColumns; n > 0 {
		c.Columns, c.Left = c.Columns[n:], n
	}
	c.draw()
	return c
}

// compare adds the time before, if it has as many buckets.
func (c *chart) compare(before *money.Costs) {
	sums := make(map[string]float64)
	for i := range before.Rows {
		sums[labelOf(&before.Rows[i])] += decimal(before.Rows[i].USD)
	}
	cells := bucketsOf(before)
	if len(cells) != len(c.Columns) {
		return
	}
	for i, x := range cells {
		c.Columns[i].Before = max(0, sums[x.label])
	}
	c.draw()
}

// forecast adds the likely total of a bucket.
func (c *chart) forecast(label string, usd float64) {
	for i := range c.Columns {
		if col := &c.Columns[i]; col.Label == label && usd > col.Total {
			col.expected = usd
		}
	}
	c.draw()
}

// draw places everything on a scale on which it has room.
func (c *chart) draw() {
	c.Top, c.Before, c.Forecast = 0, "", nil
	earlier := 0.0
	for _, col := range c.Columns {
		c.Top = max(c.Top, col.Total, col.Before, col.expected)
		earlier += col.Before
	}
	if c.Top <= 0 {
		return
	}
	step := float64(chartWidth) / float64(max(1, len(c.Columns)))
	var line []string
	for i := range c.Columns {
		col := &c.Columns[i]
		col.Boxes = nil
		at := func(y, usd float64, series int, title string) (box, float64) {
			height := usd / c.Top * chartHeight
			return box{
				Series: series, Title: col.Label + ", " + title + ": " + dollars(usd) + " USD",
				X: coordinate(float64(i)*step + step*0.1), Y: coordinate(y - height), Width: coordinate(step * 0.8), Height: coordinate(height),
			}, y - height
		}
		y := float64(chartHeight)
		for n, usd := range col.Series {
			if usd > 0 {
				var b box
				b, y = at(y, usd, n, c.Series[n])
				col.Boxes = append(col.Boxes, b)
			}
		}
		if col.expected > col.Total {
			b, _ := at(y, col.expected-col.Total, 0, "more by the forecast")
			c.Forecast = &b
		}
		line = append(line, coordinate((float64(i)+0.5)*step)+","+coordinate(chartHeight-col.Before/c.Top*chartHeight))
	}
	if earlier > 0 {
		c.Before = strings.Join(line, " ")
	}
}

// bucketSums is the costs of one bucket by the number of the group.
type bucketSums struct {
	label string
	usd   [maxSeries]float64
}

// maxColumns bounds the columns of a chart.
const maxColumns = 366

// bucketsOf returns an empty bucketSums for each bucket of costs. Those without any costs are among them where buckets have one length and there
// are not too many.
func bucketsOf(costs *money.Costs) (cells []bucketSums) {
	length := time.Duration(0)
	if len(costs.Rows) > 0 {
		length = costs.Rows[0].End.Sub(costs.Rows[0].Start)
	}
	known := make(map[string]bool)
	add := func(r *money.Cost) {
		if label := labelOf(r); !known[label] {
			known[label] = true
			cells = append(cells, bucketSums{label: label})
		}
	}
	if length == time.Hour || length == 24*time.Hour {
		if n := int(costs.To.Sub(costs.From) / length); n > 0 && n <= maxColumns {
			for i := range n {
				start := costs.From.Add(time.Duration(i) * length)
				add(&money.Cost{Start: start, End: start.Add(length)})
			}
		}
	}
	for i := range costs.Rows {
		add(&costs.Rows[i])
	}
	return cells
}

func total(list []float64) (sum float64) {
	for _, n := range list {
		sum += max(0, n)
	}
	return sum
}

// labelOf names a bucket: a day, or an hour of it.
func labelOf(c *money.Cost) string {
	start := c.Start.UTC()
	if c.End.Sub(c.Start) == time.Hour {
		return start.Format("2006-01-02 15:04")
	}
	return start.Format("2006-01-02")
}

func coordinate(n float64) string { return strconv.FormatFloat(n, 'f', 1, 64) }

// dollars writes an amount with cents, and a small one with its millionths.
func dollars(n float64) string {
	if n != 0 && math.Abs(n) < 0.01 {
		return strconv.FormatFloat(n, 'f', 6, 64)
	}
	return strconv.FormatFloat(n, 'f', 2, 64)
}
