package catalog

import (
	"encoding/json"
	"errors"
	"math/bits"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Run is what runs of one public model or endpoint cost: by run, by second of what is
// made, by hour of execution, or by token. The zero Run is an unknown price. Its
// members are called as those of the policy run_cost.
type Run struct {
	PerRun         Money `yaml:"usd_per_run" doc:"each run costs this" unit:"USD"`
	PerSecond      Money `yaml:"usd_per_second" doc:"a second of what is made costs this: input.duration, or default_seconds" unit:"USD"`
	PerHour        Money `yaml:"usd_per_execution_hour" doc:"an hour of execution costs this: at most policy.executionTimeout of the job, or default_seconds, or 600 s" unit:"USD"`
	DefaultSeconds int64 `yaml:"default_seconds" doc:"how long a run makes or takes that does not say" unit:"seconds"`
	PerTokens      Money `yaml:"usd_per_million_tokens" doc:"a million tokens cost this: at most max_tokens for each choice, or default_tokens, and those of the prompt" unit:"USD"`
	PerInput       Money `yaml:"usd_per_million_input_tokens" doc:"what those of the prompt cost instead" unit:"USD"`
	DefaultTokens  int64 `yaml:"default_tokens" doc:"how many tokens a choice has that does not say" unit:"tokens"`
}

// Validate reports every fault.
func (r Run) Validate() error {
	var errs []error
	rules := 0
	for _, p := range []Money{r.PerRun, r.PerSecond, r.PerHour, r.PerTokens} {
		if p > 0 {
			rules++
		}
	}
	if rules != 1 {
		errs = append(errs, errors.New("needs exactly one of usd_per_run, usd_per_second, usd_per_execution_hour and usd_per_million_tokens"))
	}
	if r.PerInput > 0 && r.PerTokens == 0 {
		errs = append(errs, fault.Errorf("usd_per_million_input_tokens", "needs usd_per_million_tokens beside it"))
	}
	for name, n := range map[string]int64{"default_seconds": r.DefaultSeconds, "default_tokens": r.DefaultTokens} {
		if n < 0 {
			errs = append(errs, fault.Errorf(name, "must not be negative"))
		}
	}
	return errors.Join(errs...)
}

// Known reports whether there is a price.
func (r Run) Known() bool { return r != Run{} }

// defaultExecution is how long the platform lets a job run that does not say
// (reference platform-v2, section 12.2).
const defaultExecution = 10 * time.Minute

// Most is the most that a run with a body can cost; known is false if the body does
// not say. size is the length of the body in bytes, which no prompt has more tokens
// than.
func (r Run) Most(body map[string]any, size int64) (most Money, known bool) {
	switch {
	case r.PerRun > 0:
		return r.PerRun, true
	case r.PerSecond > 0:
		return r.perSecond(member(object(body, "input"), "duration"))
	case r.PerHour > 0:
		ms := defaultExecution.Milliseconds()
		if r.DefaultSeconds > 0 {
			ms = r.DefaultSeconds * 1000
		}
		ms, ok := countOr(member(object(body, "policy"), "executionTimeout"), ms)
		return r.PerHour.share(ms, time.Hour.Milliseconds()), ok
	case r.PerTokens > 0:
		return r.tokens(body, size)
	}
	return 0, false
}

// perSecond prices a length in seconds, which may be a fraction.
func (r Run) perSecond(given any) (Money, bool) {
	if given == nil {
		return r.PerSecond.share(r.DefaultSeconds, 1), r.DefaultSeconds > 0
	}
	n, isNumber := given.(json.Number)
	if !isNumber {
		return 0, false
	}
	micro, err := ParseMoney(n.String()) // millionths, rounded up
	return r.PerSecond.share(int64(micro), microPerUSD), err == nil && micro > 0
}

// tokens prices the most tokens that the choices may have together, and the prompt.
func (r Run) tokens(body map[string]any, size int64) (Money, bool) {
	input := object(body, "input")
	sampling, chat := object(input, "sampling_params"), object(input, "openai_input")
	most, choices := int64(0), int64(1)
	for _, said := range []struct {
		in    map[string]any
		names []string
		to    *int64
	}{
		{body, []string{"max_tokens", "max_completion_tokens"}, &most},
		{input, []string{"max_tokens"}, &most},
		{sampling, []string{"max_tokens"}, &most},
		{chat, []string{"max_tokens", "max_completion_tokens"}, &most},
		{body, []string{"n", "best_of"}, &choices},
		{sampling, []string{"n", "best_of"}, &choices},
		{chat, []string{"n", "best_of"}, &choices},
	} {
		for _, name := range said.names {
			given := member(said.in, name)
			n, ok := countOr(given, *said.to)
			if !ok && given != nil {
				return 0, false
			}
			*said.to = max(*said.to, n)
		}
	}
	if most == 0 {
		most = r.DefaultTokens
	}
	if most == 0 || choices > maxTokens || most > maxTokens {
		return 0, false
	}
	return r.OfTokens(size, most*choices), true
}

// member is a member of an object of a body, which may be decoded only now.
func member(in map[string]any, name string) any {
	v := in[name]
	if d, deferred := v.(interface{ Decoded() any }); deferred {
		return d.Decoded()
	}
	return v
}

func object(in map[string]any, name string) map[string]any {
	m, _ := member(in, name).(map[string]any)
	return m
}

// maxTokens bounds what a body may say of tokens and choices, so that their product
// is in range.
const maxTokens = 1 << 31

// OfTokens is what tokens of a prompt and of its completion cost.
func (r Run) OfTokens(prompt, completion int64) Money {
	in := r.PerInput
	if in == 0 {
		in = r.PerTokens
	}
	return min(maxMoney, in.share(prompt, microPerUSD)+r.PerTokens.share(completion, microPerUSD))
}

// OfTime is what an execution costs.
func (r Run) OfTime(d time.Duration) Money {
	return r.PerHour.share(d.Milliseconds(), time.Hour.Milliseconds())
}

// share is m * n / per, rounded up and at most maxMoney. Neither n nor per is negative.
func (m Money) share(n, per int64) Money {
	hi, lo := bits.Mul64(uint64(m), uint64(n))
	if hi >= uint64(per) {
		return maxMoney
	}
	q, rest := bits.Div64(hi, lo, uint64(per))
	if rest > 0 {
		q++
	}
	return Money(min(q, uint64(maxMoney)))
}
