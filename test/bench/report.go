package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Units of the values of samples, named as benchstat wants them: seconds and bytes,
// of CPU time and of memory.
const (
	cpu             = "cpu-sec/op"
	envoyCPU        = "envoy-cpu-sec/op"
	gatewayCPU      = "gateway-cpu-sec/op"
	redisCPU        = "redis-cpu-sec/op"
	switches        = "switches/op" // voluntary ones: a thread that had to wait
	redisCommands   = "redis-commands/op"
	cpuRatio        = "x-proxy-cpu"
	perSecond       = "req/s"
	perSecondRatio  = "x-proxy-req/s"
	p50             = "p50-sec"
	p99             = "p99-sec"
	p999            = "p99.9-sec"
	failed          = "failed/op"
	ready           = "ready-sec"
	idleMemory      = "idle-B"
	loadedMemory    = "loaded-B"
	connectedMemory = "connected-B"
	perConnection   = "B/connection"
	streamingMemory = "streaming-B"
	perStream       = "B/stream"
)

// lifeKind is the kind of samples of a process, not of requests.
const lifeKind = "process"

// sample has the figures of one target in one round.
type sample struct {
	Round  int                `json:"round"`
	Target string             `json:"target"`
	Binary string             `json:"binary,omitempty"`
	Kind   string             `json:"kind"`
	Values map[string]float64 `json:"values"`
}

// left is a target or kind that was not measured, and the reason.
type left struct {
	Target string `json:"target"`
	Binary string `json:"binary,omitempty"`
	Kind   string `json:"kind,omitempty"`
	Why    string `json:"why"`
}

// report is a run: the JSON file.
type report struct {
	Time     time.Time `json:"time"`
	Revision string    `json:"revision,omitempty"`
	Platform string    `json:"platform"`
	Cores    int       `json:"cores"`
	Settings settings  `json:"settings"`
	Binaries []binary  `json:"binaries"`
	Samples  []sample  `json:"samples"`
	Left     []left    `json:"left_out,omitempty"`
}

func newReport(s settings, bs []binary) *report {
	r := &report{Time: time.Now().UTC().Truncate(time.Second), Platform: runtime.GOOS + "/" + runtime.GOARCH, Cores: runtime.NumCPU(), Settings: s, Binaries: bs}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				r.Revision = s.Value
			}
		}
	}
	return r
}

func (r *report) add(s sample) { r.Samples = append(r.Samples, s) }

func (r *report) write(path string) error {
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o600)
}

func readReport(path string) (*report, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := new(report)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// benchmarks writes the samples in Go's benchmark format, which benchstat reads.
func (r *report) benchmarks(to io.Writer) error {
	w := bufio.NewWriter(to)
	for _, s := range r.Samples {
		_, _ = fmt.Fprintf(w, "BenchmarkGate/kind=%s/target=%s", s.Kind, s.Target)
		if s.Binary != "" {
			_, _ = fmt.Fprintf(w, "/binary=%s", s.Binary)
		}
		_, _ = w.WriteString(" 1")
		for _, unit := range slices.Sorted(maps.Keys(s.Values)) {
			_, _ = fmt.Fprintf(w, " %g %s", s.Values[unit], unit)
		}
		_, _ = w.WriteString("\n")
	}
	return w.Flush()
}

// row is a line of a table.
type row struct{ target, binary string }

// column is a column of a table: a unit, and how its median is shown.
type column struct {
	head, unit string
	show       func(float64) string
	spread     bool
}

func micros(v float64) string { return fmt.Sprintf("%.0f µs", v*1e6) }
func millis(v float64) string { return fmt.Sprintf("%.2f ms", v*1e3) }
func whole(v float64) string  { return fmt.Sprintf("%.0f", v) }
func tenths(v float64) string { return fmt.Sprintf("%.1f", v) }
func ratio(v float64) string  { return fmt.Sprintf("%.2f", v) }
func share(v float64) string  { return fmt.Sprintf("%.2f %%", v*100) }
func mega(v float64) string   { return fmt.Sprintf("%.0f MB", v/1e6) }
func kilo(v float64) string   { return fmt.Sprintf("%.0f KB", v/1e3) }

// print writes the tables: one for each kind, and one of the processes. Figures are
// medians over the rounds, in brackets the least and the greatest.
func (r *report) print(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintf(w, "%d rounds of %v, %d connections, %d cores, pinned: %t; medians (least to greatest)\n\n",
		r.Settings.Rounds, r.Settings.Time, r.Settings.Connections, r.Cores, r.Settings.Pin)
	for _, k := range kinds() {
		columns := []column{
			{"CPU/request", cpu, micros, false},
			{"x proxy", cpuRatio, ratio, true},
			{"of it Envoy", envoyCPU, micros, false},
			{"gateways", gatewayCPU, micros, true},
			{"Redis", redisCPU, micros, false},
			{"requests/s", perSecond, whole, false},
			{"x proxy", perSecondRatio, ratio, true},
			{"p50", p50, millis, false},
			{"p99", p99, millis, false},
			{"failed", failed, share, true},
		}
		if k.live {
			columns = []column{
				{"delay p50", p50, millis, true},
				{"delay p99", p99, millis, true},
				{"delay p99.9", p999, millis, true},
				{"events/s", perSecond, whole, false},
				{"CPU/event", cpu, micros, false},
				{"x proxy", cpuRatio, ratio, true},
			}
		}
		if k.open {
			columns = []column{
				{"p50", p50, millis, true},
				{"p99", p99, millis, true},
				{"p99.9", p999, millis, true},
				{"requests/s", perSecond, whole, false},
				{"CPU/request", cpu, micros, false},
				{"x proxy", cpuRatio, ratio, true},
				{"switches", switches, tenths, true},
				{"Redis", redisCPU, micros, false},
				{"commands", redisCommands, tenths, true},
				{"failed", failed, share, true},
			}
		}
		r.table(w, k.name, k.name, columns)
	}
	r.table(w, "process", lifeKind, []column{
		{"ready", ready, millis, true},
		{"idle", idleMemory, mega, false},
		{fmt.Sprintf("%d connections", r.Settings.Idle), connectedMemory, mega, false},
		{"each", perConnection, kilo, false},
		{fmt.Sprintf("%d streams", r.Settings.Streams), streamingMemory, mega, false},
		{"each", perStream, kilo, false},
	})
	r.table(w, "memory under load", "create", []column{{"resident", loadedMemory, mega, true}})
	for _, b := range r.Binaries {
		_, _ = fmt.Fprintf(w, "%s: %s, %s\n", b.Name, mega(float64(b.Bytes)), b.Path)
	}
	for _, l := range r.Left {
		_, _ = fmt.Fprintf(w, "left out: %s: %s\n", strings.Join(strings.Fields(l.Target+" "+l.Binary+" "+l.Kind), " "), l.Why)
	}
	return w.Flush()
}

// table writes the targets that have samples of a kind, without columns that are
// empty.
func (r *report) table(w io.Writer, title, kind string, columns []column) {
	values := map[row]map[string][]float64{}
	var rows []row
	for _, s := range r.Samples {
		if s.Kind != kind {
			continue
		}
		at := row{s.Target, s.Binary}
		if values[at] == nil {
			values[at] = map[string][]float64{}
			rows = append(rows, at)
		}
		for unit, v := range s.Values {
			values[at][unit] = append(values[at][unit], v)
		}
	}
	if len(rows) == 0 {
		return
	}
	order := map[string]int{}
	for i, t := range targets() {
		order[t.name] = i
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Or(order[a.target]-order[b.target], cmp.Compare(a.binary, b.binary)) })
	columns = slices.DeleteFunc(columns, func(c column) bool {
		return !slices.ContainsFunc(rows, func(at row) bool { return values[at][c.unit] != nil })
	})
	_, _ = fmt.Fprintf(w, "%s\t", title)
	for _, c := range columns {
		_, _ = fmt.Fprintf(w, "%s\t", c.head)
	}
	for _, at := range rows {
		name := at.target
		if len(r.Binaries) > 1 && at.binary != "" {
			name += " " + at.binary
		}
		_, _ = fmt.Fprintf(w, "\n%s\t", name)
		for _, c := range columns {
			_, _ = fmt.Fprintf(w, "%s\t", c.cell(values[at][c.unit]))
		}
	}
	_, _ = fmt.Fprint(w, "\n\n")
}

// cell shows the values of a column.
func (c column) cell(v []float64) string {
	if len(v) == 0 {
		return ""
	}
	v = slices.Sorted(slices.Values(v))
	median := (v[(len(v)-1)/2] + v[len(v)/2]) / 2
	if c.spread && len(v) > 1 {
		return fmt.Sprintf("%s (%s to %s)", c.show(median), c.show(v[0]), c.show(v[len(v)-1]))
	}
	return c.show(median)
}
