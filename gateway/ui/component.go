package ui

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/money"
)

// The types of this file are the data of templates in assets/shell/components.html. Each names its template.

// button is a link or, with a Form, a form of one button: template "button".
type button struct {
	Title, Icon string
	// Path is where a link leads.
	Path string
	// Main marks the first action of a page, and Danger one that cannot be undone.
	Main, Danger bool
	// Post is the action of a form with the fields Hidden; empty for a link.
	Post   string
	Hidden []hiddenField
}

// hiddenField is a hidden field of a form.
type hiddenField struct{ Name, Value string }

// tab is one of several views of a subject: template "tabs" takes a list.
type tab struct {
	Title, Path string
	Here        bool
	// Count is shown next to the title, "" for none.
	Count string
}

// Levels of states and notes, by which icons and colours are chosen.
const (
	levelGood    = "good"
	levelBad     = "bad"
	levelWarn    = "warn"
	levelInfo    = "info"
	levelNeutral = "neutral"
)

// status is a state as an icon and a word: template "status".
type status struct{ Level, Word string }

// Icon returns the name of the icon of the level.
func (s status) Icon() string {
	return map[string]string{levelGood: "check", levelBad: "x-circle", levelWarn: "alert", levelInfo: "info"}[s.Level]
}

// statusOf returns a state of the API as a status. Unknown words are neutral.
func statusOf(word any) status {
	text, isText := word.(string)
	if !isText {
		text = strings.TrimSpace(wordOf(word))
	}
	level := levelNeutral
	switch text {
	case "allowed", "granted", "used", "passed", "in force", "delivered", "complete", "ok", "loaded":
		level = levelGood
	case "refused", "denied", "denies", "revoked", "failed", "error", "fault":
		level = levelBad
	case "pending", "unknown", "expired", "warn", "warns", "would deny", "idle", "no owner", "near limit", "throttled", "not complete":
		level = levelWarn
	case "excepted", "changes", "changed", "shadow", "dry run":
		level = levelInfo
	}
	return status{level, shownAs(text)}
}

// shownAs returns the words that the console shows for a state of the API.
func shownAs(state string) string {
	switch state {
	case "refused", "denies":
		return "Denied"
	case "in force":
		return "Active"
	case "not in force":
		return "Inactive"
	case "warns":
		return "Warned"
	case "would deny":
		return "Would deny"
	case "excepted":
		return "Exempted"
	}
	return title(state)
}

// wordOf writes a value of a string type.
func wordOf(v any) string {
	if s, ok := v.(interface{ String() string }); ok {
		return s.String()
	}
	return strings.Trim(pretty(v), `"`)
}

// note is a message in a box: template "note".
type note struct{ Level, Text string }

// Icon returns the name of the icon of the level.
func (n note) Icon() string { return status{Level: n.Level}.Icon() }

// tile is one figure: template "tile".
type tile struct {
	Label, Value, Unit string
	// Note explains the figure in a few words.
	Note string
	// Change compares the figure with an earlier one; nil for none.
	Change *change
	Spark  *spark
	Bar    *bar
	// Status says how the figure is to be judged; nil for nothing.
	Status *status
	// Path leads to the page with the details, "" for none.
	Path string
	// Fault is why there is no figure.
	Fault string
}

// change is the relative difference between two figures, of which the lower is the better one: costs, denials.
type change struct {
	// Share is the difference as a share of the earlier figure.
	Share float64
	// Than names the earlier figure, such as "the previous 30 days".
	Than string
}

// changeOf compares a figure with an earlier one, nil if that is zero.
func changeOf(now, before float64, than string) *change {
	if before <= 0 {
		return nil
	}
	return &change{now/before - 1, than}
}

// Text writes the difference with its sign.
func (c change) Text() string {
	n := int(math.Round(100 * c.Share))
	if n > 0 {
		return "+" + strconv.Itoa(n) + "%"
	}
	return strings.Replace(strconv.Itoa(n), "-", "−", 1) + "%"
}

// Icon returns the arrow of the direction, "" for no change.
func (c change) Icon() string {
	switch n := math.Round(100 * c.Share); {
	case n > 0:
		return "up"
	case n < 0:
		return "down"
	}
	return ""
}

// Level says whether the change is good or bad news.
func (c change) Level() string {
	switch {
	case c.Icon() == "":
		return levelNeutral
	case c.Icon() == "down":
		return levelGood
	}
	return levelBad
}

// bar shows how much of a limit is used: template "bar". All widths are in percent of the bar.
type bar struct {
	Used, Reserved, End string
	// Mark is the place of the forecast, "" for none.
	Mark string
	// Percent is the share of the limit that is used or reserved.
	Percent int
	// Level is good below 80 %, warn below 100 %, and bad from the limit on.
	Level string
	// Label says in words what the bar shows.
	Label string
}

// newBar returns the bar of a budget: the used and reserved amounts of a limit, and the forecast of the period, 0 for none. The bar ends
// at the limit or, if that is greater, at the forecast, at most at twice the limit.
func newBar(limit, used, reserved, forecast float64) bar {
	if limit <= 0 {
		limit = math.SmallestNonzeroFloat64
	}
	end := min(2*limit, max(limit, used+reserved, forecast))
	at := func(n float64) string { return coordinate(100 * min(1, n/end)) }
	b := bar{Used: at(used), End: at(used), Reserved: coordinate(100 * min(1-min(1, used/end), reserved/end)), Percent: int(min(9999, 100*(used+reserved)/limit))}
	b.Level = levelGood
	switch {
	case b.Percent >= 100:
		b.Level = levelBad
	case b.Percent >= 80 || forecast > limit:
		b.Level = levelWarn
	}
	b.Label = usdOf(used) + " used and " + usdOf(reserved) + " reserved of " + usdOf(limit)
	if forecast > 0 {
		b.Mark, b.Label = at(forecast), b.Label+", "+usdOf(forecast)+" forecast"
	}
	return b
}

// barOf returns the bar of a budget without a forecast.
func barOf(b money.Budget) bar {
	return newBar(decimal(b.Limit), decimal(b.Used), decimal(b.Reserved), 0)
}

// spark is a small line without axes: template "spark".
type spark struct {
	Line, Area string
	// Label says in words what the line shows.
	Label string
}

// Measures of a spark, in units of its own.
const sparkWidth, sparkHeight = 100.0, 24.0

// newSpark draws values from the oldest to the newest, nil for fewer than two.
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

// when is a time as its distance from now, with the exact time as its title: template "when".
type when struct{ At, Now time.Time }

// Text writes the distance, such as "5 min ago" or "in 3 h".
func (w when) Text() string {
	switch d := w.Now.Sub(w.At); {
	case d <= -time.Minute:
		return "in " + lasting(-d)
	case d < time.Minute:
		return "just now"
	default:
		return lasting(d) + " ago"
	}
}

// Exact writes the time with its zone.
func (w when) Exact() string { return moment(w.At) }

// code is a block of text to copy: template "code".
type code struct {
	// Label names the block for screen readers, and on its button.
	Label, Text string
}

// empty is shown in the place of a list without entries: template "empty".
type empty struct {
	Icon, Title, Text string
	// Code is a call to try, nil for none.
	Code *code
	// Next leads on, nil for nothing.
	Next *button
}

// fact is a key and its value: template "facts" takes a list.
type fact struct {
	Label string
	cell
}

// chip is a filter that is set: template "chips" takes a list.
type chip struct{ Label, Value, Remove string }
