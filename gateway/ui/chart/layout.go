package chart

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"
)

// Dimensions of a chart in pixels. Horizontal positions are percentages of the plot width, which depends on the page.
const (
	plotTop    = 10.0
	plotHeight = 200.0
	axisHeight = 26.0
	// lineWidth is the width of the coordinate system of lines, which is stretched to the plot.
	lineWidth = 1000.0
	// widest is the maximum width of a bar in percent.
	widest = 7.0
)

// drawing holds the positions of all parts of a chart for the template.
type drawing struct {
	Chart

	Height, PlotTop, PlotHeight, LineWidth string
	// UnitLabel names the unit of the vertical axis. Summary describes the chart for screen readers.
	UnitLabel, Summary string
	// Left is the number of oldest buckets that were dropped.
	Left   int
	YTicks []yTick
	XTicks []xTick
	Legend []legend
	Cols   []column
	// PreviousPath is the SVG path of the previous period, or "".
	PreviousPath string
	// LimitY is the vertical position of the limit.
	LimitY, LimitLabel string
	HasForecast        bool
	Table              table
}

type yTick struct {
	Y, LabelY, Label string
}

type xTick struct {
	X, Label, Anchor string
	// Minor labels are hidden on narrow screens.
	Minor bool
}

type legend struct {
	Name, Class, Total string
	Index              int
}

// column holds the positions of one bucket.
type column struct {
	X, Width string // position and width of the area that shows the readout
	Title    string
	Href     string
	Missing  bool
	Boxes    []box
	Forecast *box
}

type box struct {
	Series                     int
	Class, X, Y, Width, Height string
}

// table holds the values of a chart as text.
type table struct {
	Head []string
	Rows []tableRow
}

type tableRow struct {
	Label, Stamp, Href string
	Cells              []string
}

// crop drops the oldest buckets of a chart with more than MaxBuckets, and returns their number.
func (c *Chart) crop() (left int) {
	left = max(0, len(c.Buckets)-MaxBuckets)
	cut := func(list []float64) []float64 { return list[min(left, len(list)):] }
	c.Buckets, c.Previous, c.Forecast = c.Buckets[left:], cut(c.Previous), cut(c.Forecast)
	series := make([]Series, len(c.Series))
	for i, s := range c.Series {
		s.Values = cut(s.Values)
		s.Class = cmp.Or(s.Class, fmt.Sprintf("series-%d", i%MaxSeries+1))
		series[i] = s
	}
	c.Series = series
	return left
}

func (c Chart) layout() *drawing {
	tall := cmp.Or(float64(c.Height), plotHeight)
	baseline := plotTop + tall
	d := &drawing{
		Left: c.crop(), Height: number(baseline + axisHeight), PlotTop: number(plotTop),
		PlotHeight: number(tall), LineWidth: number(lineWidth),
	}
	c.Zone = cmp.Or(c.Zone, time.UTC)
	d.Chart = c
	d.UnitLabel = c.Unit.Name
	if c.Per != "" {
		d.UnitLabel += " per " + c.Per
	}
	s := newScale(c.most(), c.Unit)
	y := func(v float64) float64 { return baseline - min(max(0, v)/s.top, 1)*tall }
	for _, v := range s.ticks() {
		d.YTicks = append(d.YTicks, yTick{number(y(v)), number(y(v) + 4), s.label(v, c.Unit)})
	}
	d.XTicks = c.xTicks()
	for i := range c.Series {
		of := &c.Series[i]
		d.Legend = append(d.Legend, legend{of.Name, of.Class, c.Unit.Format(of.Sum()), i})
	}
	if c.Limit != nil {
		d.LimitY, d.LimitLabel = number(y(c.Limit.Value)), c.Limit.Name+": "+c.Unit.text(c.Limit.Value)
	}
	d.columns(y)
	d.PreviousPath = d.trace(d.Previous, y)
	d.Table, d.Summary = c.table(), c.summary()
	return d
}

// most returns the highest value that the chart draws.
func (c *Chart) most() (most float64) {
	for i := range c.Buckets {
		sum, _ := c.sum(i)
		most = max(most, sum, orZero(at(c.Previous, i)), orZero(at(c.Forecast, i)))
		for _, s := range c.Series {
			most = max(most, orZero(at(s.Values, i)))
		}
	}
	if c.Limit != nil && present(c.Limit.Value) && c.Limit.Value <= 4*most {
		most = max(most, c.Limit.Value)
	}
	return most
}

// sum adds up the values of bucket i. known is false if all values are missing.
func (c *Chart) sum(i int) (sum float64, known bool) {
	for _, s := range c.Series {
		if v := at(s.Values, i); present(v) {
			sum, known = sum+v, true
		}
	}
	return sum, known
}

// columns computes the positions of the bars and of the areas that show readouts.
func (d *drawing) columns(y func(float64) float64) {
	step := 100 / float64(len(d.Buckets))
	width := min(step*0.8, widest)
	for i, b := range d.Buckets {
		_, known := d.sum(i)
		expected := at(d.Forecast, i)
		col := column{
			X: number(float64(i)*step) + "%", Width: number(step) + "%", Href: b.Href, Title: d.readout(i),
			Missing: !known && !present(expected),
		}
		x, w, base := number(float64(i)*step+(step-width)/2)+"%", number(width)+"%", 0.0
		place := func(value float64, series int, class string) box {
			low, high := y(base), y(base+value)
			base += value
			return box{series, class, x, number(high), w, number(low - high)}
		}
		for n, s := range d.Series {
			if v := at(s.Values, i); present(v) && v > 0 {
				col.Boxes = append(col.Boxes, place(v, n, s.Class))
			}
		}
		if present(expected) && expected > base {
			more := place(expected-base, -1, "")
			col.Forecast, d.HasForecast = &more, true
		}
		d.Cols = append(d.Cols, col)
	}
}

// trace returns the SVG path of a line through values, in coordinates that are stretched to the plot width. Missing values leave gaps.
func (d *drawing) trace(list []float64, y func(float64) float64) string {
	step := lineWidth / float64(len(d.Buckets))
	var out strings.Builder
	drawing := false
	for i := range d.Buckets {
		v := at(list, i)
		if !present(v) {
			drawing = false
			continue
		}
		command := "M"
		if drawing {
			command = "L"
		}
		fmt.Fprintf(&out, "%s%s %s", command, number((float64(i)+0.5)*step), number(y(v)-plotTop))
		if alone := !drawing && !present(at(list, i+1)); alone {
			out.WriteString("h0") // a dot
		}
		drawing = true
	}
	return out.String()
}

// xTicks returns about eight labels for the horizontal axis.
func (c *Chart) xTicks() (ticks []xTick) {
	const most = 8
	step := 100 / float64(len(c.Buckets))
	add := func(i int, label string) {
		x := (float64(i) + 0.5) * step
		anchor := "middle"
		if x > 95 {
			anchor = "end"
		} else if x < 3 {
			anchor, x = "start", float64(i)*step
		}
		ticks = append(ticks, xTick{X: number(x) + "%", Label: label, Anchor: anchor, Minor: len(ticks)%2 == 1})
	}
	length := c.Buckets[0].Length
	if length >= 24*time.Hour {
		every := (len(c.Buckets) + most - 1) / most
		for i, b := range c.Buckets {
			if i%every == 0 {
				add(i, c.axisLabel(b, true))
			}
		}
		return ticks
	}
	interval := c.interval(length, most)
	for i, b := range c.Buckets {
		start := b.Start.In(c.Zone)
		minutes := start.Hour()*60 + start.Minute()
		if minutes%int(interval.Minutes()) == 0 || len(c.Buckets) <= 2 {
			add(i, c.axisLabel(b, minutes == 0))
		}
	}
	return ticks
}

// interval returns the distance between labels on an axis with buckets shorter than a day, so that the axis has at most maxLabels labels.
func (c *Chart) interval(length time.Duration, maxLabels int) time.Duration {
	all := length * time.Duration(len(c.Buckets))
	for _, minutes := range []int{5, 10, 15, 30, 60, 2 * 60, 3 * 60, 4 * 60, 6 * 60, 12 * 60} {
		if d := time.Duration(minutes) * time.Minute; d >= length && all/d <= time.Duration(maxLabels) {
			return d
		}
	}
	return 24 * time.Hour
}

// axisLabel returns the axis label of a bucket: its date, or its time of day.
func (c *Chart) axisLabel(b Bucket, day bool) string {
	start := b.Start.In(c.Zone)
	switch {
	case b.Length >= 28*24*time.Hour:
		return start.Format("Jan 2006")
	case day:
		return start.Format("2 Jan")
	}
	return start.Format("15:04")
}

// within reports whether a time is within bucket i, and not at its bounds.
func (c *Chart) within(t time.Time, i int) bool {
	return c.Buckets[i].Start.Before(t) && t.Before(c.Buckets[i].Start.Add(c.Buckets[i].Length))
}

// partial reports whether bucket i is incomplete.
func (c *Chart) partial(i int) bool {
	return c.within(c.From, i) || c.within(c.To, i) || c.within(c.Now, i)
}

// Label returns the date of a bucket, with its time and zone if the bucket is shorter than a day.
func (c *Chart) Label(b Bucket) string {
	start := b.Start.In(cmp.Or(c.Zone, time.UTC))
	switch {
	case b.Length >= 28*24*time.Hour:
		return start.Format("January 2006")
	case b.Length >= 24*time.Hour:
		return start.Format("Mon 2 Jan 2006")
	}
	return start.Format("Mon 2 Jan 2006 15:04 MST")
}

// compared returns the value that the total of bucket i is compared with: the total of the previous period or, without a previous period,
// the total of bucket i-1. It returns NaN if that total is missing or if one of the compared buckets is incomplete.
func (c *Chart) compared(i int) float64 {
	if c.partial(i) || c.Previous == nil && (i == 0 || c.partial(i-1)) {
		return math.NaN()
	}
	if c.Previous != nil {
		return at(c.Previous, i)
	}
	before, known := c.sum(i - 1)
	if !known {
		return math.NaN()
	}
	return before
}

func (c *Chart) table() (t table) {
	t.Head = []string{"Time"}
	for i, b := range c.Buckets {
		row := tableRow{Label: c.Label(b), Stamp: b.Start.UTC().Format(time.RFC3339), Href: b.Href}
		if c.within(c.Now, i) {
			row.Label += ", so far"
		}
		add := func(shown bool, name, value string) {
			if shown {
				row.Cells = append(row.Cells, value)
			}
			if shown && i == 0 {
				t.Head = append(t.Head, name)
			}
		}
		for _, s := range c.Series {
			add(true, s.Name, c.Unit.Format(at(s.Values, i)))
		}
		sum, known := c.sum(i)
		if !known {
			sum = math.NaN()
		}
		expected := "–"
		if v := at(c.Forecast, i); present(v) {
			expected = c.Unit.Format(v)
		}
		add(c.Total, "Total", c.Unit.Format(sum))
		add(c.Previous != nil, "Previous period", c.Unit.Format(at(c.Previous, i)))
		add(c.Total, "Change", cmp.Or(Change(sum, c.compared(i)), "–"))
		add(c.Forecast != nil, "Forecast", expected)
		t.Rows = append(t.Rows, row)
	}
	return t
}

// readout returns the total of a bucket for browsers without scripts.
func (c *Chart) readout(i int) string {
	label := c.Label(c.Buckets[i])
	sum, known := c.sum(i)
	if !known {
		return label + ": no data"
	}
	return label + ": " + c.Unit.text(sum)
}

// summary returns a text description of the chart.
func (c *Chart) summary() string {
	var total, most float64
	peak := -1
	for i := range c.Buckets {
		sum, known := c.sum(i)
		total += sum
		if known && (peak < 0 || sum > most) {
			most, peak = sum, i
		}
	}
	text := c.Title + ", " + c.Label(c.Buckets[0]) + " to " + c.Label(c.Buckets[len(c.Buckets)-1])
	if peak < 0 {
		return text + ": no data"
	}
	if c.Total {
		text += ". Total " + c.Unit.text(total)
	}
	return text + ". Highest: " + c.Unit.text(most) + ", " + c.Label(c.Buckets[peak])
}
