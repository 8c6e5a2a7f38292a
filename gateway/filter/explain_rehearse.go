package filter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/catalog"
)

// Question is a request that nobody made.
type Question struct {
	Method string
	// Path and Query are the two halves of the request target.
	Path, Query string
	Header      http.Header
	Body        []byte
	// Caller is who would make it.
	Caller *identity.Caller
}

// Rehearsal takes requests through the stages of a pipeline without counting
// and without sending anything but reads. A stage it does not know is left out
// and named, because it might do something.
type Rehearsal struct {
	Pipeline *Pipeline
	Recorder *telemetry.Recorder
	// Translators serve the legacy dialects and remember nothing.
	Translators map[route.Dialect]Translator
	// Catalog is where prices come from.
	Catalog *catalog.Catalog
	// Limits tells what a caller has left, counting nothing; nil tells nothing.
	Limits func(context.Context, *identity.Caller) ([]LimitLeft, error)
	// Entries lists the policies an organisation has switched on.
	Entries func(org string) []policies.Entry
	// Offline reads nothing from the platform. What would have to be read to
	// know is then unknown.
	Offline bool
}

// LimitLeft is one window of one scope of a caller.
type LimitLeft struct {
	Scope, Window    string
	Limit, Remaining int64
	// Counted is false when only the quota is known.
	Counted bool
	Reset   time.Duration
}

// ErrOffline is why an offline rehearsal does not read.
var ErrOffline = errors.New("the platform is not asked in an offline explanation")

// Run explains what would become of a request.
func (r *Rehearsal) Run(ctx context.Context, q Question) *Explanation {
	now := r.Recorder.Now()
	event := &telemetry.Event{Revision: r.Pipeline.Revision}
	ex := NewExchange(Inbound{
		Door: "explain", Method: q.Method, Path: q.Path, Query: q.Query, Major: 1, Minor: 1,
		Header: q.Header, Length: int64(len(q.Body)), Body: q.Body, Received: now,
	}, event)
	ex.DecisionID, ex.RequestID = "explained", "explained"
	s := &stageplay{
		r: r, caller: q.Caller, made: make(map[recentKey]any),
		x: &Explanation{
			Dry: true, Time: now, Revision: r.Pipeline.Revision, Method: q.Method, Path: q.Path, Dialect: string(ex.Dialect),
			Verdict: VerdictAllowed, Calls: []ExplainedCall{},
			Caller: ExplainedCaller{Org: q.Caller.Org, Team: q.Caller.Team, Key: q.Caller.Key, Roles: roleNames(q.Caller.Roles)},
		},
	}
	s.run(ctx, ex)
	return s.x
}

// stageplay is one rehearsal under way.
type stageplay struct {
	r      *Rehearsal
	caller *identity.Caller
	x      *Explanation
	// made holds what calls of the rehearsal would have made or changed, by the
	// call that reads it; nil for what they would have deleted.
	made map[recentKey]any
	// turn is held by a v2 call: translators may make several at once.
	turn sync.Mutex
}

func (s *stageplay) run(ctx context.Context, ex *Exchange) {
	chain, x := s.r.Pipeline.Chain, s.x
	whole := s.walk(ctx, ex, chain.Head, &x.Stages) && s.walk(ctx, ex, chain.Content, &x.Stages)
	x.Operation = ex.Event.Operation
	switch {
	case whole: // a v2 request that is neither refused nor answered so far
		call := s.call(ctx, ex)
		x.Calls = append(x.Calls, call)
		s.settle(call.Verdict, ex)
	case ex.Event.Refusal != "":
		s.settle(VerdictRefused, ex)
	}
	x.ToPass = toPass(x)
}

// settle makes the end of an exchange that of the whole.
func (s *stageplay) settle(v Verdict, ex *Exchange) {
	x, e := s.x, ex.Event
	if v == VerdictAllowed {
		return
	}
	x.Verdict = v
	if e.Refusal != "" {
		x.Refusal, x.Stage, x.Detail, x.Status = e.Refusal, e.Stage, e.Detail, ex.Answer.Status
	}
}

// walk runs stages until one ends the request, and reports whether none did.
func (s *stageplay) walk(ctx context.Context, ex *Exchange, filters []Filter, out *[]ExplainedStage) bool {
	for _, f := range filters {
		stage := ExplainedStage{Name: f.Name(), Result: stagePassed}
		run := true
		switch t := f.(type) {
		case *Keep, Note, Stamp, *Legacy:
			continue
		case Size, Wire, Match, Routed, Local, Decode, *Brownout, Validate, Rebuild, Relay:
			if seen(*out, f.Name()) {
				continue // the size is looked at twice
			}
		case Identify:
			s.identify(ex, &stage)
			run = false
		case *Count:
			s.count(ctx, &stage)
			run = false
		case *Translate:
			if _, legacy := s.r.Translators[ex.Dialect]; !legacy {
				continue
			}
			*out = append(*out, s.translate(ctx, ex))
			return false
		case *Resolve:
			f = s.resolve(t)
		case *Authorize:
			f = s.authorize(t)
		default:
			stage.Result, run = stageSkipped, false
		}
		if run && !s.step(ctx, ex, f, &stage) {
			*out = append(*out, stage)
			return false
		}
		*out = append(*out, stage)
	}
	return true
}

func seen(stages []ExplainedStage, name string) bool {
	return slices.ContainsFunc(stages, func(s ExplainedStage) bool { return s.Name == name })
}

// step runs one stage and notes what it came to.
func (s *stageplay) step(ctx context.Context, ex *Exchange, f Filter, stage *ExplainedStage) bool {
	err := guard(ctx, ex, f.Name(), f.Request)
	switch {
	case errors.Is(err, ErrOffline) && ex.Input != nil && ex.Input.Resource.After != nil:
		// Only the price is missing.
		ex.Answer, stage.Result = nil, stageUnknown
		stage.Notes = append(stage.Notes, "the price is unknown: "+ErrOffline.Error())
		return true
	case errors.Is(err, ErrOffline):
		stage.Result = stageUnknown
		stage.Notes = append(stage.Notes, ErrOffline.Error())
		return false
	case err != nil:
		s.r.Pipeline.Chain.refuse(ex, f.Name(), err)
		stage.Result = stageRefused
		stage.Notes = append(stage.Notes, refusalNotes(err)...)
		return false
	case ex.Answer != nil && ex.Answer.Status >= http.StatusBadRequest:
		stage.Result = stageRefused
		if ex.Event.Refusal == "" {
			ex.Event.Refusal, ex.Event.Stage, ex.Event.Detail = refusalOfPlatform, f.Name(), detailOf(ex.Answer)
		}
		stage.Notes = append(stage.Notes, fmt.Sprintf("%d %s", ex.Answer.Status, ex.Event.Detail))
		return false
	case ex.Answer != nil:
		stage.Result = stageAnswers
		stage.Notes = append(stage.Notes, "the gateway answers this itself")
		return false
	}
	stage.Notes = append(stage.Notes, s.notes(ex, f)...)
	return true
}

// refusalNotes is what a problem tells its caller.
func refusalNotes(err error) []string {
	p := problemOf(err)
	notes := []string{fmt.Sprintf("%d %s: %s", p.Status, p.Title, p.Detail)}
	if p.Kind == problem.Forbidden {
		return notes[:0] // the policies are listed by themselves
	}
	return append(notes, p.Errors...)
}

// notes says what a stage that passed found out.
func (s *stageplay) notes(ex *Exchange, f Filter) []string {
	switch f.(type) {
	case Match:
		if ex.Route != nil {
			return []string{string(ex.Dialect) + " operation " + ex.Route.ID}
		}
		return []string{"no operation; refused once the caller is known and counted"}
	case *Resolve:
		return resolveNotes(ex.Input)
	case *Authorize:
		return []string{"policies " + ex.Verdict.Revision}
	}
	return nil
}

func resolveNotes(in *policies.Input) []string {
	var notes []string
	if t := in.Resource.Template; t != nil {
		whose := "somebody else's"
		if t.Own {
			whose = "own"
		}
		notes = append(notes, fmt.Sprintf("%s template %s is merged in and sent in its place", whose, t.ID))
	}
	if in.Resource.Current != nil {
		notes = append(notes, "the object as it is was read")
	}
	switch {
	case in.Cost.Known && in.Cost.Basis != "":
		notes = append(notes, fmt.Sprintf("at most %s USD per hour: %s", in.Cost.Hourly, in.Cost.Basis))
	case !in.Cost.Known:
		notes = append(notes, "the price is unknown: "+in.Cost.Reason)
	}
	return notes
}

func (s *stageplay) identify(ex *Exchange, stage *ExplainedStage) {
	ex.Caller = s.caller
	ex.Event.Org, ex.Event.Team, ex.Event.Key = s.caller.Org, s.caller.Team, s.caller.Key
	stage.Notes = []string{"taken to be " + callerText(s.caller.Org, s.caller.Team, s.caller.Key, s.x.Caller.Roles)}
}

// count shows what is left. A full window refuses, but the rest is told too.
func (s *stageplay) count(ctx context.Context, stage *ExplainedStage) {
	if s.caller.Exempt {
		stage.Notes = []string{"exempt"}
		return
	}
	if s.r.Limits == nil {
		stage.Result = stageSkipped
		return
	}
	left, err := s.r.Limits(ctx, s.caller)
	if err != nil {
		stage.Result, stage.Notes = stageUnknown, []string{"the limits cannot be read"}
		return
	}
	for _, l := range left {
		note := fmt.Sprintf("%s, %s: %d of %d left", l.Scope, l.Window, l.Remaining, l.Limit)
		if !l.Counted {
			note = fmt.Sprintf("%s, %s: quota %d", l.Scope, l.Window, l.Limit)
		} else if l.Remaining < 1 {
			stage.Result, s.x.Verdict = stageRefused, VerdictRefused
			s.x.Refusal, s.x.Stage, s.x.Status = string(problem.RateLimited), "count", problem.RateLimited.Status()
			s.x.Detail = fmt.Sprintf("the %s window of %s is full for %s", l.Window, l.Scope, l.Reset.Round(time.Second))
		}
		stage.Notes = append(stage.Notes, note)
	}
}

// resolve is the pipeline's own, seeing what the rehearsal would have made.
func (s *stageplay) resolve(f *Resolve) *Resolve {
	own := *f
	reader := *f.Reader
	reader.rehearsed, reader.offline = s.made, s.r.Offline
	own.Reader, own.Catalog = &reader, s.r.Catalog
	if !s.r.Offline {
		// Nothing will be sent that could tell, so whether the object exists is
		// asked even where no policy looks at it.
		own.Looks = func(string) ([]string, bool) { return []string{""}, true }
	}
	return &own
}

// authorize is the pipeline's own, writing no log.
func (s *stageplay) authorize(f *Authorize) *Authorize {
	own := *f
	own.Log, own.Resolve = nil, s.resolve(f.Resolve)
	return &own
}

// call rehearses one v2 call.
func (s *stageplay) call(ctx context.Context, ex *Exchange) ExplainedCall {
	c := ExplainedCall{
		Operation: ex.Operation.ID, Method: ex.Operation.Method, Path: expand(ex.Operation.Path, ex.Params),
		Verdict: VerdictAllowed,
	}
	sent := ex.Doc
	passed := s.walk(ctx, ex, s.r.Pipeline.Chain.Call, &c.Stages)
	if len(ex.Query) > 0 {
		c.Path += "?" + encodeQuery(ex.Query)
	}
	if in := ex.Input; in != nil {
		price(&c, in.Cost, ex.Event.Priced)
		if in.Resource.Template == nil || ex.Origin != nil {
			sent = ex.Doc // with what policies changed in it
		}
	}
	c.Body = sent
	e := ex.Event
	c.Refusal, c.Detail = e.Refusal, e.Detail
	switch {
	case e.Refusal != "":
		c.Verdict, c.Status = VerdictRefused, ex.Answer.Status
	case !passed:
		c.Verdict = VerdictUnknown
	}
	if ex.Verdict.Revision != "" {
		c.PolicyRevision = ex.Verdict.Revision
		c.Policies = s.verdicts(&ex.Verdict)
	}
	if c.Verdict == VerdictRefused && s.hangsOnPrice(ctx, ex) {
		c.Verdict = VerdictUnknown
	}
	if passed {
		s.missing(ctx, ex, &c)
	}
	return c
}

// hangsOnPrice tells whether only a price that could not be read refuses.
func (s *stageplay) hangsOnPrice(ctx context.Context, ex *Exchange) bool {
	if !s.r.Offline || len(ex.Verdict.Deny) == 0 || ex.Input.Cost.Known {
		return false
	}
	free := *ex.Input
	free.Cost = policies.Cost{Known: true}
	d, err := stageOf[*Authorize](s.r.Pipeline.Chain.Call).Engine.Decide(ctx, ex.Caller.Org, &free)
	return err == nil && len(d.Deny) == 0
}

// stageOf finds a stage of a chain by its type; the chain is ours and has it.
func stageOf[T Filter](filters []Filter) T {
	for _, f := range filters {
		if t, ok := f.(T); ok {
			return t
		}
	}
	panic(fmt.Sprintf("no stage %T", *new(T)))
}

// verdicts lists what every policy said, those included that said nothing.
func (s *stageplay) verdicts(d *policies.Decision) []ExplainedPolicy {
	out := spoken(d)
	heard := make(map[string]bool, len(out))
	for _, p := range out {
		heard[p.Policy] = true
	}
	for _, e := range s.r.Entries(s.caller.Org) {
		if heard[e.Policy] {
			continue
		}
		p := ExplainedPolicy{Policy: e.Policy, Verdict: verdictPasses}
		if !concerns(&e, s.x.Caller) {
			p.Verdict = verdictNoPart
		}
		if e.Mode != "" && e.Mode != policies.ModeEnforce {
			p.Message = "mode " + string(e.Mode)
		}
		out = append(out, p)
	}
	return out
}

// concerns tells whether an entry is for a caller.
func concerns(e *policies.Entry, c ExplainedCaller) bool {
	has := func(list []string, names ...string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(list, n) })
	}
	return (len(e.Teams) == 0 || has(e.Teams, c.Team)) && !has(e.ExceptTeams, c.Team) &&
		(len(e.Roles) == 0 || has(e.Roles, c.Roles...)) && !has(e.ExceptRoles, c.Roles...)
}
