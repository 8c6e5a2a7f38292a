package chart_test

import (
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/ui/chart"
	"github.com/tollgate-dev/tollgate/test/world"
)

var update = flag.Bool("update", false, "rewrite golden files")

var nan = math.NaN()

// days returns buckets of one day from 1 November 2026 on.
func days(n int) (list []chart.Bucket) {
	for i := range n {
		list = append(list, chart.Bucket{Start: time.Date(2026, 11, 1+i, 0, 0, 0, 0, time.UTC), Length: 24 * time.Hour})
	}
	return list
}

// hours returns buckets of a length from a time in UTC on.
func hours(n int, length time.Duration, from time.Time) (list []chart.Bucket) {
	for i := range n {
		list = append(list, chart.Bucket{Start: from.Add(time.Duration(i) * length), Length: length})
	}
	return list
}

// charts are the charts of the golden file, by name.
func charts() []chart.Chart {
	return []chart.Chart{
		{
			ID: "stack", Title: "Cost by team", Unit: chart.USD, Per: "day", Total: true, Buckets: days(4),
			Series:   []chart.Series{{Name: "research", Values: []float64{10, 20, nan, 5}}, {Name: "<script>alert(1)</script>\"&", Values: []float64{1.5, 0.004, nan, -3}}},
			Previous: []float64{8, 8, nan, 8}, Forecast: []float64{nan, nan, nan, 21}, Limit: &chart.Limit{Name: "Budget", Value: 25},
		},
		{
			ID: "one", Title: "Requests by outcome", Unit: chart.Requests, Buckets: []chart.Bucket{{Start: days(1)[0].Start, Length: time.Hour, Href: "/ui/requests?since=a&until=b"}},
			Series: []chart.Series{{Name: "Allowed", Class: "outcome-allowed", Values: []float64{1234567}}, {Name: "Denied", Class: "outcome-denied", Values: []float64{3}}},
		},
		{ID: "none", Title: "Cost", Empty: "No cost <yet>."},
	}
}

func TestChartsAreGolden(t *testing.T) {
	t.Parallel()
	var got strings.Builder
	for _, c := range charts() {
		fmt.Fprintf(&got, "-- %s --\n%s\n", c.ID, c.HTML())
	}
	world.Golden(t, update, "testdata/charts.golden", got.String())
}

// The bucket that contains the current time is not compared with a complete one.
func TestNoChangeSoFar(t *testing.T) {
	t.Parallel()
	c := chart.Chart{ID: "x", Title: "Cost", Unit: chart.USD, Total: true, Buckets: days(3), Series: []chart.Series{{Name: "a", Values: []float64{1, 2, 1}}}}
	c.Now = c.Buckets[2].Start.Add(time.Hour)
	html := string(c.HTML())
	if !strings.Contains(html, ", so far</time>") || !strings.Contains(html, "&#43;100%") || strings.Contains(html, "-50%") {
		t.Errorf("want a change of the second day only: %s", html)
	}
	c.Now, c.From, c.To = time.Time{}, c.Buckets[0].Start.Add(time.Hour), c.Buckets[2].Start.Add(time.Hour)
	if html = string(c.HTML()); strings.Contains(html, "so far") || strings.Contains(html, "%</td>") {
		t.Errorf("want no change against days that are partly outside the range: %s", html)
	}
}

// elements returns how many elements of a name a chart has. It fails for markup that is not well-formed, and for inline style and script.
func elements(t *testing.T, html template.HTML, name string) (n int) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(strings.ReplaceAll(strings.ReplaceAll(string(html), " hidden>", ">"), " data-chart>", ">")))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return n
		}
		if err != nil {
			t.Fatalf("%v in %s", err, html)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if e.Name.Local == name {
			n++
		}
		if e.Name.Local == "script" || e.Name.Local == "style" {
			t.Errorf("element %s", e.Name.Local)
		}
		for _, a := range e.Attr {
			if a.Name.Local == "style" || strings.HasPrefix(a.Name.Local, "on") {
				t.Errorf("attribute %s=%q", a.Name.Local, a.Value)
			}
			if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
				t.Errorf("attribute %s=%q", a.Name.Local, a.Value)
			}
		}
	}
}

// Any values give well-formed markup within the plot.
func TestHostileValues(t *testing.T) {
	t.Parallel()
	for name, values := range map[string][]float64{
		"missing": {nan, nan, nan}, "zero": {0, 0, 0}, "huge": {1e300, 1e18, math.MaxFloat64}, "tiny": {1e-9, 1e-12, 5e-324},
		"infinite": {math.Inf(1), 1, math.Inf(-1)}, "negative": {-1, -2, -3}, "short": {1}, "none": nil,
	} {
		for _, unit := range []chart.Unit{chart.USD, chart.Requests} {
			c := chart.Chart{ID: "x", Title: "<b>", Unit: unit, Total: true, Buckets: days(3), Previous: values, Forecast: values, Series: []chart.Series{{Name: "a'\"<>&", Values: values}}}
			html := c.HTML()
			if n := elements(t, html, "tr"); n != 4 {
				t.Errorf("%s: the table has %d rows, want 4", name, n)
			}
			if strings.Contains(string(html), "<b>") {
				t.Errorf("%s: the title is not escaped", name)
			}
		}
	}
}

func TestLongChartsAreCropped(t *testing.T) {
	t.Parallel()
	values := make([]float64, chart.MaxBuckets+10)
	html := chart.Chart{ID: "x", Unit: chart.USD, Buckets: hours(len(values), time.Hour, time.Unix(0, 0)), Series: []chart.Series{{Name: "a", Values: values}}}.HTML()
	if n := elements(t, html, "tr"); n != chart.MaxBuckets+1 || !strings.Contains(string(html), "10 older intervals are not shown.") {
		t.Errorf("the table has %d rows, want %d and a note", n, chart.MaxBuckets+1)
	}
}

// axis returns the labels of an axis of a chart.
func axis(html template.HTML, class string) (labels []string) {
	for part := range strings.SplitSeq(string(html), "<text ") {
		if head, rest, ok := strings.Cut(part, ">"); ok && strings.Contains(head, class) {
			label, _, _ := strings.Cut(rest, "<")
			labels = append(labels, label)
		}
	}
	return labels
}

func TestVerticalAxisHasRoundValues(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		most float64
		unit chart.Unit
		want string
	}{
		{0, chart.USD, "0 1"},
		{1, chart.Requests, "0 1"},
		{3, chart.Requests, "0 1 2 3"},
		{7.3, chart.USD, "0 2 4 6 8"},
		{9.99, chart.USD, "0 2.5 5.0 7.5 10.0"},
		{97, chart.USD, "0 25 50 75 100"},
		{0.0037, chart.USD, "0 0.001 0.002 0.003 0.004"},
		{8123, chart.USD, "0 2.5k 5.0k 7.5k 10.0k"},
		{81234, chart.USD, "0 25k 50k 75k 100k"},
		{2.4e6, chart.Requests, "0 1M 2M 3M"},
		{4.4e9, chart.USD, "0 2B 4B 6B"},
	} {
		c := chart.Chart{Unit: tt.unit, Buckets: days(1), Series: []chart.Series{{Values: []float64{tt.most}}}}
		if got := strings.ReplaceAll(strings.Join(axis(c.HTML(), `x="46"`), " "), "$", ""); got != tt.want {
			t.Errorf("%g %s: axis %q, want %q", tt.most, tt.unit.Name, got, tt.want)
		}
	}
}

// Labels are in the zone of the organisation, and stand at whole hours of it.
func TestHorizontalAxisIsInTheZone(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	from := time.Date(2026, 11, 1, 20, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name    string
		buckets []chart.Bucket
		want    string
	}{
		{"a day of hours", hours(24, time.Hour, from), "21:00, 2 Nov, 03:00, 06:00, 09:00, 12:00, 15:00, 18:00"},
		{"an hour of five minutes", hours(12, 5*time.Minute, from), "21:00, 21:10, 21:20, 21:30, 21:40, 21:50"},
		{"a week of hours", hours(7*24, time.Hour, from), "2 Nov, 3 Nov, 4 Nov, 5 Nov, 6 Nov, 7 Nov, 8 Nov"},
		{"days", days(30), "1 Nov, 5 Nov, 9 Nov, 13 Nov, 17 Nov, 21 Nov, 25 Nov, 29 Nov"},
		{"a month", []chart.Bucket{{Start: from, Length: 30 * 24 * time.Hour}}, "Nov 2026"},
		{"one hour", hours(1, time.Hour, from.Add(time.Minute)), "21:01"},
	} {
		c := chart.Chart{Zone: berlin, Unit: chart.USD, Buckets: tt.buckets}
		if got := strings.Join(axis(c.HTML(), "chart-x"), ", "); got != tt.want {
			t.Errorf("%s: axis %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"$1,234,567.90": chart.USD.Format(1234567.899), "-$1,000.00": chart.USD.Format(-1000), "$999.00": chart.USD.Format(999), "$0.00": chart.USD.Format(0),
		"$0.0037": chart.USD.Format(0.0037), "$0.000000": chart.USD.Format(1e-9), "no data": chart.USD.Format(nan), "1,235": chart.Requests.Format(1234.6),
		"+12%": chart.Change(112, 100), "-50%": chart.Change(1, 2), "0%": chart.Change(2, 2), "": chart.Change(1, 0), "> +999%": chart.Change(1e9, 1),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
