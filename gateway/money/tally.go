package money

// candidate is a usage report found in a JSON value, with its position in the value.
type candidate struct {
	report
	// rank is the rank of the member names in the report. depth is the number of objects around the report.
	rank, depth int
}

// Ranks of the sets of member names that reports use. A report of a lower rank never replaces a report of a higher rank.
const (
	rankTimings = iota + 1
	rankCounts
	rankUsage
)

// better reports whether c is preferred to o, an earlier report in the same value.
func (c *candidate) better(o *candidate) bool {
	switch {
	case o == nil:
		return true
	case c.whole() != o.whole():
		return c.whole()
	case c.rank != o.rank:
		return c.rank > o.rank
	}
	return c.depth <= o.depth
}

// found holds the facts of one JSON value that determine its cost.
type found struct {
	best *candidate
	// sum counts the tokens of reports that best does not include, from other items of a list.
	sum Tokens
	// id identifies the generation.
	id                    string
	content, failed, done bool
	job                   Job
}

// offer makes r the best report of the value if it is better than the current one.
func (f *found) offer(r report, rank, depth int) {
	if r.empty() {
		return
	}
	if c := (&candidate{report: r, rank: rank, depth: depth}); c.better(f.best) {
		f.best, f.sum = c, Tokens{}
	}
}

// include adds the facts of a member of the value.
func (f *found) include(in *found) {
	f.content, f.failed, f.done = f.content || in.content, f.failed || in.failed, f.done || in.done
	f.job.Cost += in.job.Cost
	if f.id == "" {
		f.id = in.id
	}
	if in.best != nil && in.best.better(f.best) {
		f.best, f.sum = in.best, in.sum
	}
}

// follow adds the next item of a list. Two items belong to one generation if they have the same ID or, if there are no IDs, if the counts
// of the second item continue the counts of the first. Counts of different generations are added.
func (f *found) follow(in *found, batch bool) {
	best, sum, id := f.best, f.sum, f.id
	f.best = nil
	f.include(in)
	switch {
	case in.best == nil:
		f.best, f.sum, f.id = best, sum, id
		return
	case best == nil:
		f.id = in.id
		return
	}
	same := in.best.continues(&best.report)
	if in.id != "" && id != "" {
		same = in.id == id
	}
	f.id = in.id
	if batch && (in.best.has(input) || in.best.has(total)) && (in.id == "" || in.id != id) {
		same = false
	}
	if same {
		f.best.report = in.best.over(&best.report)
		f.sum = sum.plus(in.sum)
		return
	}
	f.sum = sum.plus(best.report.sum()).plus(in.sum)
}

// usageTally accumulates the facts of a response.
type usageTally struct {
	best *candidate
	sum  Tokens
	job  Job
	// content and failed are set if the response has content, or an error. stale is set if content followed the last report. done is set
	// by the end marker.
	content, failed, stale, done bool
}

// add adds the next value of the response.
func (t *usageTally) add(f *found) {
	t.content, t.failed, t.done = t.content || f.content, t.failed || f.failed, t.done || f.done
	t.stale = t.stale || f.content
	job, cost := f.job, t.job.Cost+f.job.Cost
	if t.job.ID == "" && t.job.Status == "" && !t.job.Finished {
		t.job = job
	}
	t.job.Cost = cost
	if f.best == nil || t.best != nil && f.best.rank < t.best.rank {
		return
	}
	if t.best != nil {
		f.best.report = f.best.over(&t.best.report)
	}
	t.best, t.sum, t.stale = f.best, f.sum, false
}

// end adds the fields of an event, after its values.
func (t *usageTally) end(e *event) {
	t.failed = t.failed || e.failed || e.name == "error"
	t.done = t.done || e.done
}

// result returns the counts of the last report. cut is set if the rest of the response is missing.
func (t *usageTally) result(cut bool) Result {
	if t.best == nil || t.stale && (cut || t.failed) {
		return Result{}
	}
	n, known := t.best.tokens(t.content)
	switch {
	case t.stale && n.Output+n.Unsplit == 0: // the report precedes the content
	case known:
		return Result{Tokens: n.plus(t.sum), Known: true}
	case n.Output > 0:
		return Result{Tokens: n.plus(t.sum), Partial: true}
	}
	return Result{}
}
