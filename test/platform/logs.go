package platform

import (
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tickEvery is how often a running container writes a line of its own accord.
const tickEvery = 10 * time.Second

// Where a line comes from.
const (
	containerLog = "container"
	systemLog    = "system"
)

// logBook is the log of one container. Its lines follow from its runs, so
// nothing has to be written down while it runs: line 0 of a run is the order to
// start it, 1 the image, 2 the start, 3 and up what the container says every
// tickEvery, and after those comes the end.
type logBook struct {
	image string
	runs  []run
}

// logLine is one line; n counts the lines of a book from 1.
type logLine struct {
	at     time.Time
	n      int64
	source string
	text   string
}

// leads is how many lines come before the container's own.
const leads = 3

// at is when line i of a run falls due, unless the run ends before.
func (r *run) at(i int64) time.Time {
	switch i {
	case 0:
		return r.Ordered
	case 1:
		return r.Booting
	case 2:
		return r.Running
	default:
		return r.Running.Add(time.Duration(i-leads) * tickEvery)
	}
}

// lines is how many lines of a run are written by now, its end apart.
func (r *run) lines(now time.Time) int64 {
	if !r.Ended.IsZero() && r.Ended.Before(now) {
		now = r.Ended
	}
	switch {
	case now.Before(r.Ordered):
		return 0
	case now.Before(r.Booting):
		return 1
	case now.Before(r.Running):
		return 2
	default:
		return leads + 1 + int64(now.Sub(r.Running)/tickEvery)
	}
}

func (r *run) ended(now time.Time) bool { return !r.Ended.IsZero() && !now.Before(r.Ended) }

func (b logBook) text(r *run, i int64) (source, text string) {
	switch {
	case i == 0 && r.Restart:
		return systemLog, "restarting the container"
	case i == 0:
		return systemLog, "looking for a machine"
	case i == 1:
		return systemLog, "image " + b.image + " is ready"
	case i == 2:
		return systemLog, "container started"
	case i == leads:
		return containerLog, "ready"
	default:
		return containerLog, "alive for " + (time.Duration(i-leads) * tickEvery).String()
	}
}

// backwards walks the lines of one source (both, when it is empty) written by
// now, the newest first. It skips what is not asked for without counting it out.
func (b logBook) backwards(now time.Time, source string) iter.Seq[logLine] {
	return func(yield func(logLine) bool) {
		var before int64
		for i := range b.runs {
			before += b.runs[i].total(now)
		}
		for k := len(b.runs) - 1; k >= 0; k-- {
			r := &b.runs[k]
			before -= r.total(now)
			written := r.lines(now)
			if r.ended(now) && source != containerLog &&
				!yield(logLine{at: r.Ended, n: before + written + 1, source: systemLog, text: "container stopped"}) {
				return
			}
			first, last := int64(0), written-1
			if source == containerLog {
				first = leads
			}
			if source == systemLog {
				last = min(last, leads-1)
			}
			for i := last; i >= first; i-- {
				from, text := b.text(r, i)
				if !yield(logLine{at: r.at(i), n: before + i + 1, source: from, text: text}) {
					return
				}
			}
		}
	}
}

func (r *run) total(now time.Time) int64 {
	n := r.lines(now)
	if r.ended(now) {
		n++
	}
	return n
}

// next is when another line falls due; the zero time when the container does
// not run.
func (b logBook) next(now time.Time) time.Time {
	last := &b.runs[len(b.runs)-1]
	if !last.Ended.IsZero() {
		return time.Time{}
	}
	return last.at(last.lines(now))
}

// cursor is a place in a log: after line n of the instant at, or with n zero
// after the whole instant, or with n negative before it.
type cursor struct {
	at time.Time
	n  int64
}

func (c cursor) before(l logLine) bool {
	if !l.at.Equal(c.at) {
		return l.at.After(c.at)
	}
	return c.n < 0 || c.n > 0 && l.n > c.n
}

func (l logLine) id() string { return stampFine(l.at) + "/" + fmt.Sprintf("%012d", l.n) }

// stampFine keeps all of an instant, so that a cursor finds its line again.
func stampFine(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// parseCursor reads an event id: an instant, perhaps with a line number.
func parseCursor(id string) (cursor, error) {
	instant, number, numbered := strings.Cut(id, "/")
	at, err := time.Parse(time.RFC3339Nano, instant)
	if err != nil {
		return cursor{}, err
	}
	if !numbered {
		return cursor{at: at}, nil
	}
	n, err := strconv.ParseInt(number, 10, 64)
	return cursor{at: at, n: max(n, 1)}, err
}

// logQuery is which lines a caller wants first.
type logQuery struct {
	source string
	tail   int
	from   *cursor
}

// logQuery reads the parameters: a last event id beats since, which beats tail.
func (x *exchange) logQuery() (logQuery, error) {
	p := &params{q: x.query}
	q := logQuery{tail: p.integer("tail", 0, 5000, 100)}
	if p.has("source") {
		q.source = p.enum("source", containerLog, systemLog)
	}
	if since := p.moment("since"); p.has("since") {
		q.from = &cursor{at: since, n: -1}
	}
	if id := x.r.Header.Get("Last-Event-Id"); id != "" {
		c, err := parseCursor(id)
		if err != nil {
			p.add("header.Last-Event-ID", "must be the id of an event, but got '%s'", id)
		}
		q.from = &c
	}
	return q, p.err()
}

// collect returns the lines the query asks for, oldest first.
func (q logQuery) collect(b logBook, now time.Time) []logLine {
	var lines []logLine
	if q.from == nil && q.tail == 0 {
		return nil
	}
	for l := range b.backwards(now, q.source) {
		if q.from != nil && !q.from.before(l) {
			break
		}
		lines = append(lines, l)
		if q.from == nil && len(lines) == q.tail {
			break
		}
	}
	slices.Reverse(lines)
	return lines
}

// logState is what a stream needs to know of a log at one instant.
type logState struct {
	logBook
	gone    bool // nothing will ever be added
	now     time.Time
	changed <-chan struct{}
}

// streamLogs answers with the lines of a log as server-sent events, those there
// are and then those to come, until the container is gone, the client leaves or
// the emulator is closed.
func (x *exchange) streamLogs(q logQuery, look func() logState) reply {
	header := http.Header{
		"Content-Type":      {"text/event-stream"},
		"Cache-Control":     {"no-cache"},
		"Connection":        {"keep-alive"},
		"X-Accel-Buffering": {"no"},
	}
	return reply{status: http.StatusOK, header: header, stream: func() error {
		ctx, stop := x.untilClosed()
		defer stop()
		out := http.NewResponseController(x.w)
		for {
			st := look()
			lines := q.collect(st.logBook, st.now)
			if _, err := x.w.Write(appendEvents(nil, lines)); err != nil {
				return err
			}
			if err := out.Flush(); err != nil {
				return err
			}
			if st.gone {
				return nil
			}
			q.from = advanceCursor(q.from, lines, st)
			next := st.next(st.now)
			if err := x.s.clock.Wait(ctx, next, st.changed); err != nil {
				return nil // the client left or we are closing: a stream's normal end
			}
		}
	}}
}

// advanceCursor is where the next look goes on.
func advanceCursor(from *cursor, lines []logLine, st logState) *cursor {
	if len(lines) > 0 {
		last := lines[len(lines)-1]
		return &cursor{at: last.at, n: last.n}
	}
	if from != nil {
		return from
	}
	for newest := range st.backwards(st.now, "") {
		return &cursor{at: newest.at, n: newest.n}
	}
	return &cursor{at: st.now}
}

// appendEvents writes lines as events: an id and the line as JSON.
func appendEvents(b []byte, lines []logLine) []byte {
	for _, l := range lines {
		b = fmt.Appendf(b, "id: %s\ndata: %s\n\n", l.id(), object{"ts", stampFine(l.at), "source", l.source, "line", l.text}.append(nil))
	}
	return b
}

// logParameters names the query parameters of operations that read logs.
func logParameters() []string { return []string{"source", "tail", "since"} }

// logs is the operation that streams the log of a record. look finds what the log is of, and
// returns the function that tells what is in it, and whether nothing will ever be added, with the state
// in hand.
func logs[T any](k resource[T], look func(x *exchange, v *T) (func() (logBook, bool), error)) handler {
	return func(x *exchange) (reply, error) {
		q, err := x.logQuery()
		if err != nil {
			return reply{}, err
		}
		return k.on(func(x *exchange, v *T) (reply, error) {
			state, err := look(x, v)
			if err != nil {
				return reply{}, err
			}
			return x.streamLogs(q, func() logState {
				x.lock()
				defer x.unlock()
				book, gone := state()
				return logState{book, gone, x.now, x.s.changedLocked()}
			}), nil
		})(x)
	}
}

func (x *exchange) podLogLocked(p *pod) (func() (logBook, bool), error) {
	return func() (logBook, bool) {
		return logBook{p.Container.Image, slices.Clone(p.Runs)}, x.acct.pods.get(p.ID) != p
	}, nil
}
