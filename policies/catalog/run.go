package catalog

import (
	"cmp"
	"encoding/json"
	"errors"
	"math/bits"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// RunPrice is the cost of runs of one public model or endpoint, by exactly one of its prices.
// The zero Run is an unknown price. Its members are called as those of the policy
// run_cost.
type RunPrice struct {
	PerRun         Money `yaml:"usd_per_run" doc:"each run costs this" unit:"USD"`
	PerImage       Money `yaml:"usd_per_image" doc:"each image costs this: one, or input.num_images, num_outputs, batch_size and n, multiplied" unit:"USD"`
	PerMegapixel   Money `yaml:"usd_per_megapixel" doc:"a million pixels of each image cost this: input.width by input.height or input.size, or default_width by default_height" unit:"USD"`
	DefaultWidth   int64 `yaml:"default_width" doc:"how wide an image is that does not say" unit:"pixels"`
	DefaultHeight  int64 `yaml:"default_height" doc:"how high an image is that does not say" unit:"pixels"`
	PerSecond      Money `yaml:"usd_per_second" doc:"a second of the result costs this: input.duration, or default_seconds" unit:"USD"`
	RoundSeconds   int64 `yaml:"round_seconds" doc:"lengths are rounded up to a multiple of this" unit:"seconds"`
	PerCharacters  Money `yaml:"usd_per_thousand_characters" doc:"a thousand characters of input.prompt cost this; a character counts as its bytes in UTF-8" unit:"USD"`
	PerHour        Money `yaml:"usd_per_execution_hour" doc:"an hour of execution costs this: at most policy.executionTimeout of the job, or default_seconds, or 600 s" unit:"USD"`
	DefaultSeconds int64 `yaml:"default_seconds" doc:"how long a run makes or takes that does not say" unit:"seconds"`
	PerTokens      Money `yaml:"usd_per_million_tokens" doc:"a million tokens cost this: at most max_tokens for each choice, or default_tokens, and those of the prompt" unit:"USD"`
	PerInput       Money `yaml:"usd_per_million_input_tokens" doc:"what those of the prompt cost instead" unit:"USD"`
	PerCached      Money `yaml:"usd_per_million_cached_tokens" doc:"what tokens of the prompt cost instead that the model server reports as read from its prompt cache" unit:"USD"`
	DefaultTokens  int64 `yaml:"default_tokens" doc:"how many tokens a choice has that does not say" unit:"tokens"`

	ByResolution      map[string]Money `yaml:"usd_by_resolution" doc:"what an image or second costs instead, by input.resolution or input.size as it is written; the price itself, which none is above, is that of any other" unit:"USD"`
	DefaultResolution string           `yaml:"default_resolution" doc:"the resolution of a run that does not say"`
	AtLeastDefault    bool             `yaml:"at_least_default" doc:"a smaller or shorter run, or one of fewer tokens, is reserved as the default"`

	// Free says that the price of a run is given, and is 0. FreeInput and FreeCached say so of the tokens of its prompt and of its cached ones.
	Free, FreeInput, FreeCached bool `yaml:"-"`
}

// NoteKeys sets Free, FreeInput and FreeCached: a price of 0 means free. present reports whether the configuration has a key.
func (r *RunPrice) NoteKeys(present func(key string) bool) {
	for key, price := range r.prices() {
		r.Free = r.Free || present(key) && price == 0
	}
	r.FreeInput = present("usd_per_million_input_tokens") && r.PerInput == 0
	r.FreeCached = present("usd_per_million_cached_tokens") && r.PerCached == 0
}

// prices are the prices of which a run has exactly one, by their names.
func (r *RunPrice) prices() map[string]Money {
	return map[string]Money{
		"usd_per_run": r.PerRun, "usd_per_image": r.PerImage, "usd_per_megapixel": r.PerMegapixel, "usd_per_second": r.PerSecond,
		"usd_per_thousand_characters": r.PerCharacters, "usd_per_execution_hour": r.PerHour, "usd_per_million_tokens": r.PerTokens,
	}
}

// maxCount bounds what prices and bodies may say of lengths and numbers, so that
// products of two are in range.
const maxCount = 1 << 31

// Validate reports every fault.
func (r RunPrice) Validate() error {
	var errs fault.Found
	rules := 0
	for _, p := range r.prices() {
		if p > 0 {
			rules++
		}
	}
	if r.Free {
		rules++
	}
	if rules != 1 {
		errs = append(errs, errors.New("needs exactly one of usd_per_run, usd_per_image, usd_per_megapixel, usd_per_second, usd_per_thousand_characters, usd_per_execution_hour and usd_per_million_tokens"))
	}
	errs.If((r.PerInput > 0 || r.FreeInput) && r.PerTokens == 0 && !r.Free, "usd_per_million_input_tokens", "needs usd_per_million_tokens beside it")
	errs.If((r.PerCached > 0 || r.FreeCached) && r.PerTokens == 0 && !r.Free, "usd_per_million_cached_tokens", "needs usd_per_million_tokens beside it")
	errs.If(r.PerTokens > 0 && r.PerCached > r.prompt(), "usd_per_million_cached_tokens", "must not be above the price of other tokens of the prompt: runs are reserved at that price")
	for name, n := range map[string]int64{
		"default_seconds": r.DefaultSeconds, "default_tokens": r.DefaultTokens, "round_seconds": r.RoundSeconds,
		"default_width": r.DefaultWidth, "default_height": r.DefaultHeight,
	} {
		errs.If(n < 0 || n > maxCount, name, "must be from 0 to %d", maxCount)
	}
	errs.If(len(r.ByResolution) > 0 && r.PerImage == 0 && r.PerSecond == 0, "usd_by_resolution", "needs usd_per_image or usd_per_second beside it")
	for name, price := range r.ByResolution {
		errs.If(price > max(r.PerImage, r.PerSecond), "usd_by_resolution."+name, "must not be above the price itself")
	}
	return errors.Join(errs...)
}

// Known reports whether there is a price above 0. A run without one may be free.
func (r RunPrice) Known() bool {
	return max(r.PerRun, r.PerImage, r.PerMegapixel, r.PerSecond, r.PerCharacters, r.PerHour, r.PerTokens) > 0
}

// defaultExecution is how long the platform lets a job run that does not say
// (reference platform-v2, section 12.2).
const defaultExecution = 10 * time.Minute

// MaxCost is the most that a run with a body can cost; known is false if the body does
// not say, or is nil because it cannot be seen. size is the length of the body in
// bytes, which no prompt has more tokens than.
func (r RunPrice) MaxCost(body map[string]any, size int64) (most Money, known bool) {
	input := object(body, "input")
	switch {
	case r.PerRun > 0:
		return r.PerRun, true
	case r.PerHour > 0:
		ms := defaultExecution.Milliseconds()
		if r.DefaultSeconds > 0 {
			ms = r.DefaultSeconds * 1000
		}
		ms, ok := countOr(member(object(body, "policy"), "executionTimeout"), ms)
		return r.PerHour.share(ms, time.Hour.Milliseconds()), ok
	case body == nil:
		return 0, false
	case r.PerImage > 0:
		n, ok := images(input)
		return r.at(r.PerImage, input).share(n, 1), ok
	case r.PerMegapixel > 0:
		n, ok1 := images(input)
		pixels, ok2 := r.pixels(input)
		return r.PerMegapixel.share(pixels, 1_000_000).share(n, 1), ok1 && ok2
	case r.PerSecond > 0:
		micro, ok := r.length(member(input, "duration"))
		return r.at(r.PerSecond, input).share(micro, microPerUSD), ok
	case r.PerCharacters > 0:
		text, ok := member(input, "prompt").(string)
		return r.PerCharacters.share(max(1, int64(len(text))), 1000), ok
	case r.PerTokens > 0:
		n, ok := r.tokens(body)
		return r.TokenCost(size, n), ok
	}
	return 0, false
}

// at is a price by the resolution of the result. A resolution that is not on the list is
// the dearest.
func (r RunPrice) at(price Money, input map[string]any) Money {
	if len(r.ByResolution) == 0 {
		return price
	}
	said, most := false, Money(0)
	for _, name := range []string{"resolution", "size"} {
		if given := member(input, name); given != nil {
			text, _ := given.(string)
			said, most = true, max(most, r.resolution(text, price))
		}
	}
	if !said {
		return r.resolution(r.DefaultResolution, price)
	}
	return most
}

func (r RunPrice) resolution(text string, other Money) Money {
	for name, price := range r.ByResolution {
		if strings.EqualFold(name, text) {
			return price
		}
	}
	return other
}

// images is how many images a run makes: the product of its numbers by any name.
func images(input map[string]any) (n int64, known bool) {
	n = 1
	for _, name := range []string{"num_images", "num_outputs", "batch_size", "n"} {
		if given := member(input, name); given != nil {
			several, ok := countOr(given, 0)
			if !ok || several > maxCount/n {
				return 0, false
			}
			n *= several
		}
	}
	return n, true
}

// pixels is how large an image is: by its sides, or its size, whichever is larger.
func (r RunPrice) pixels(input map[string]any) (n int64, known bool) {
	w, h, ok := sides(member(input, "size"))
	width, ok1 := countOr(member(input, "width"), cmp.Or(r.DefaultWidth, w))
	height, ok2 := countOr(member(input, "height"), cmp.Or(r.DefaultHeight, h))
	if !ok || !ok1 || !ok2 || max(width, height, w, h) > maxCount {
		return 0, false
	}
	if n = max(width*height, w*h); r.AtLeastDefault {
		n = max(n, r.DefaultWidth*r.DefaultHeight)
	}
	return n, true
}

// sides reads a size, "1024*768" for instance. A missing one has none.
func sides(size any) (width, height int64, ok bool) {
	if size == nil {
		return 0, 0, true
	}
	text, _ := size.(string)
	w, h, _ := strings.Cut(strings.ToLower(strings.ReplaceAll(text, "*", "x")), "x")
	width, ok1 := countOr(json.Number(w), 0)
	height, ok2 := countOr(json.Number(h), 0)
	return width, height, ok1 && ok2
}

// length is a length in millionths of a second. A number of a body may be a fraction.
func (r RunPrice) length(given any) (micro int64, known bool) {
	least := r.DefaultSeconds * microPerUSD
	switch n, isNumber := given.(json.Number); {
	case given == nil:
		micro = least
	case isNumber:
		parsed, err := ParseMoney(n.String()) // millionths, rounded up
		if err != nil || parsed == 0 {
			return 0, false
		}
		if micro = int64(parsed); r.AtLeastDefault {
			micro = max(micro, least)
		}
	}
	if step := r.RoundSeconds * microPerUSD; step > 0 {
		micro = (micro + step - 1) / step * step
	}
	return micro, micro > 0
}

// tokens is the most tokens that the choices may have together.
func (r RunPrice) tokens(body map[string]any) (n int64, known bool) {
	a := ParseTokenRequest("", body)
	most := a.Tokens
	if most == 0 || r.AtLeastDefault {
		most = max(most, r.DefaultTokens)
	}
	return most * a.Choices, most > 0 && !a.Invalid
}

// member is a member of an object of a body, which may be decoded only now.
func member(in map[string]any, name string) any { return decoded(in[name]) }

func decoded(v any) any {
	if d, deferred := v.(interface{ Decoded() any }); deferred {
		return d.Decoded()
	}
	return v
}

func object(in map[string]any, name string) map[string]any {
	m, _ := member(in, name).(map[string]any)
	return m
}

// TokenCost is what tokens of a prompt and of its completion cost.
func (r RunPrice) TokenCost(prompt, completion int64) Money {
	return r.UsageCost(prompt, 0, completion)
}

// UsageCost is what tokens of a prompt and of its completion cost, where cached tokens of the prompt were read from a cache.
func (r RunPrice) UsageCost(prompt, cached, completion int64) Money {
	return min(maxMoney, r.prompt().share(prompt-cached, microPerUSD)+r.cached().share(cached, microPerUSD)+r.PerTokens.share(completion, microPerUSD))
}

// prompt returns the price of a million tokens of a prompt.
func (r RunPrice) prompt() Money {
	if r.FreeInput {
		return 0
	}
	return cmp.Or(r.PerInput, r.PerTokens)
}

// cached returns the price of a million tokens of a prompt that were read from a cache.
func (r RunPrice) cached() Money {
	if r.FreeCached {
		return 0
	}
	return cmp.Or(r.PerCached, r.prompt())
}

// TimeCost is what an execution costs.
func (r RunPrice) TimeCost(d time.Duration) Money {
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
