package ui

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// The types in this file hold the data of the templates in assets/shell/components.html. Each type names its template.

// button is a link or, if Post is set, a form with a single button: template "button".
type button struct {
	Title, Icon string
	// Path is the address of a link.
	Path string
	// Main marks the primary action of a page, and Danger an irreversible action.
	Main, Danger bool
	// Post is the address that a form with the fields in Hidden is submitted to. It is empty for links.
	Post   string
	Hidden []hiddenField
}

// hiddenField is a hidden field of a form.
type hiddenField struct{ Name, Value string }

// tab links to one of several views: template "tabs" takes a list.
type tab struct {
	Title, Path string
	Here        bool
	// Count is shown next to the title. It may be empty.
	Count string
}

// Levels of states and notes. They select icons and colours.
const (
	levelGood    = "good"
	levelBad     = "bad"
	levelWarn    = "warn"
	levelInfo    = "info"
	levelNeutral = "neutral"
)

// status shows a state as an icon and a word: template "status".
type status struct{ Level, Word string }

// Icon returns the name of the icon of the level.
func (s status) Icon() string {
	return map[string]string{levelGood: "check", levelBad: "x-circle", levelWarn: "alert", levelInfo: "info"}[s.Level]
}

// statusOf returns the status for a state of the API, which has any string type. Unknown states have the neutral level.
func statusOf(word any) status {
	text := fmt.Sprint(word)
	level := levelNeutral
	switch text {
	case "allowed", "granted", "used", "passed", "in force", "delivered", "complete", "ok", "loaded":
		level = levelGood
	case "refused", "denied", "denies", "revoked", "failed", "error", "fault":
		level = levelBad
	case "pending", "unknown", "expired", "warn", "warns", "would deny", "idle", "near limit", "throttled", "not complete":
		level = levelWarn
	case "excepted", "changes", "changed", "shadow", "dry run":
		level = levelInfo
	}
	return status{level, shownAs(text)}
}

// shownAs returns the console's wording for a state of the API.
func shownAs(state string) string {
	return cmp.Or(map[string]string{
		"refused": "Denied", "denies": "Denied", "in force": "Active", "not in force": "Inactive",
		"warns": "Warned", "excepted": "Exempted", "granted": "Approved",
	}[state], title(state))
}

// note is a message in a box: template "note".
type note struct{ Level, Text string }

// Icon returns the name of the icon of the level.
func (n note) Icon() string { return status{Level: n.Level}.Icon() }

// tile shows one metric: template "tile".
type tile struct {
	Label, Value, Unit string
	// Note describes the metric in a few words.
	Note string
	// Change compares the metric with an earlier value. It may be nil.
	Change *change
	Spark  *spark
	Bar    *bar
	// Status rates the metric. It may be nil.
	Status *status
	// Path links to the details. It may be empty.
	Path string
	// Fault explains why the metric is unavailable.
	Fault string
}

// change is the relative difference between two values of a metric for which lower is better, such as costs and denials.
type change struct {
	// Share is the difference divided by the earlier value.
	Share float64
	// Than describes the earlier value, such as "the previous 30 days".
	Than string
	// Was is the earlier value, which is shown instead of the difference. It is empty unless a percentage would mislead.
	Was string
}

// changeOf returns the change from before to now, or nil if before is zero.
func changeOf(now, before float64, than string) *change {
	if before <= 0 {
		return nil
	}
	return &change{now/before - 1, than, ""}
}

// changeOfCount is like changeOf for counts. It shows a small earlier count instead of a percentage.
func changeOfCount(now, before int64, than string) *change {
	c := changeOf(float64(now), float64(before), than)
	if c != nil && before < 10 {
		c.Was = count(before)
	}
	return c
}

// Text formats the difference with its sign.
func (c change) Text() string {
	n := int(math.Round(100 * c.Share))
	if c.Was != "" {
		return "was " + c.Was
	}
	if n > 0 {
		return "+" + strconv.Itoa(n) + "%"
	}
	return strings.Replace(strconv.Itoa(n), "-", "−", 1) + "%"
}

// Icon returns the name of an arrow icon for the direction, or "" if the values are equal.
func (c change) Icon() string {
	switch n := math.Round(100 * c.Share); {
	case n > 0:
		return "up"
	case n < 0:
		return "down"
	}
	return ""
}

// Level rates the change as good or bad.
func (c change) Level() string {
	switch {
	case c.Icon() == "":
		return levelNeutral
	case c.Icon() == "down":
		return levelGood
	}
	return levelBad
}

// bar shows the used share of a limit: template "bar". All widths are in percent of the bar, which ends at the limit.
type bar struct {
	Used, Reserved, End string
	// Mark is the position of the forecast, or "". Over reports that the forecast exceeds the limit; the mark is then a cap at the end.
	Mark string
	Over bool
	// Percent is the used and reserved share of the limit, rounded.
	Percent int
	// Level is good below 80 %, warn below 100 % or if the forecast exceeds the limit, and bad from 100 %.
	Level string
	// Label is a text description of the bar.
	Label string
}

// newBar returns the bar of a budget in USD. A forecast of 0 is not shown.
func newBar(limit, used, reserved, forecast float64) bar {
	of := usdOf(limit)
	limit = max(limit, math.SmallestNonzeroFloat64)
	at := func(n float64) float64 { return 100 * min(1, n/limit) }
	share := (used + reserved) / limit
	b := bar{
		Used: coordinate(at(used)), End: coordinate(at(used)), Reserved: coordinate(at(used+reserved) - at(used)),
		Percent: int(math.Round(min(9999, 100*share))), Over: forecast > limit, Level: levelGood,
	}
	switch {
	case share >= 1:
		b.Level = levelBad
	case share >= 0.8 || b.Over:
		b.Level = levelWarn
	}
	b.Label = usdOf(used) + " used and " + usdOf(reserved) + " reserved of " + of
	if forecast > 0 {
		b.Mark, b.Label = coordinate(at(forecast)), b.Label+", "+usdOf(forecast)+" forecast"
	}
	return b
}

// spark is a small line chart without axes: template "spark".
type spark struct {
	Line, Area string
	// Label is a text description of the line.
	Label string
}

// Dimensions of a spark in SVG user units.
const sparkWidth, sparkHeight = 100.0, 24.0

// newSpark returns a line through values, oldest first, or nil if there are fewer than two.
func newSpark(values []float64, label string) *spark {
	if len(values) < 2 {
		return nil
	}
	top := 0.0
	for _, n := range values {
		top = max(top, n)
	}
	if top == 0 {
		top = 1
	}
	points := make([]string, len(values))
	for i, n := range values {
		points[i] = coordinate(float64(i)*sparkWidth/float64(len(values)-1)) + "," + coordinate(sparkHeight-1-max(0, n)/top*(sparkHeight-2))
	}
	line := strings.Join(points, " ")
	return &spark{Line: line, Area: "0," + coordinate(sparkHeight) + " " + line + " " + coordinate(sparkWidth) + "," + coordinate(sparkHeight), Label: label}
}

// when shows a time relative to now, with the exact time as its title: template "when".
// If Full is set, it shows the date and time instead.
type when struct {
	At, Now time.Time
	Full    bool
}

// Text formats the time relative to Now, such as "5 min ago" or "in 3 h".
func (w when) Text() string {
	if w.Full {
		return w.At.Format(map[bool]string{true: "2 Jan 15:04:05", false: "2 Jan 2006 15:04:05"}[w.At.Year() == w.Now.Year()])
	}
	switch d := w.Now.Sub(w.At); {
	case d <= -time.Minute:
		return "in " + lasting(-d)
	case d < time.Minute:
		return "just now"
	default:
		return lasting(d) + " ago"
	}
}

// Exact formats the time with its zone.
func (w when) Exact() string { return moment(w.At) }

// code is a block of text with a copy button: template "code".
type code struct {
	// Label names the block for screen readers and on its button.
	Label, Text string
}

// empty is the empty state of a list: template "empty".
type empty struct {
	Icon, Title, Text string
	// Code is an example call. It may be nil.
	Code *code
	// Next is a link to the next step. It may be nil.
	Next *button
}

// fact is a name and its value: template "facts" takes a list.
type fact struct {
	Label string
	cell
}

// chip is an active filter: template "chips" takes a list.
type chip struct{ Label, Value, Remove string }
