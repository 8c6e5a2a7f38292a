package catalog

import (
	"cmp"
	"encoding/json"
	"errors"
	"math/bits"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// RunPrice is the price of runs of one public model or endpoint. Exactly one unit price must be set. The zero RunPrice is an unknown price.
// Its members have the same names as the parameters of the policy run_cost.
type RunPrice struct {
	PerRun         Money `yaml:"usd_per_run" doc:"price per run" unit:"USD"`
	PerImage       Money `yaml:"usd_per_image" doc:"price per image. The number of images is the product of input.num_images, input.num_outputs, input.batch_size and input.n, where present" unit:"USD"`
	PerMegapixel   Money `yaml:"usd_per_megapixel" doc:"price per million pixels, by input.width and input.height, by input.size, or by default_width and default_height" unit:"USD"`
	DefaultWidth   int64 `yaml:"default_width" doc:"image width if the body sets none" unit:"pixels"`
	DefaultHeight  int64 `yaml:"default_height" doc:"image height if the body sets none" unit:"pixels"`
	PerSecond      Money `yaml:"usd_per_second" doc:"price per second of output, by input.duration or default_seconds" unit:"USD"`
	RoundSeconds   int64 `yaml:"round_seconds" doc:"round lengths up to a multiple of this number" unit:"seconds"`
	PerCharacters  Money `yaml:"usd_per_thousand_characters" doc:"price per thousand UTF-8 bytes of input.prompt" unit:"USD"`
	PerHour        Money `yaml:"usd_per_execution_hour" doc:"price per hour of execution; the maximum cost assumes policy.executionTimeout, else default_seconds, else 600 s" unit:"USD"`
	DefaultSeconds int64 `yaml:"default_seconds" doc:"length of the output or execution if the body sets none" unit:"seconds"`
	PerTokens      Money `yaml:"usd_per_million_tokens" doc:"price per million tokens: the prompt tokens and, for each choice, max_tokens or default_tokens" unit:"USD"`
	PerInput       Money `yaml:"usd_per_million_input_tokens" doc:"price per million prompt tokens; default usd_per_million_tokens; 0 means free" unit:"USD"`
	PerCached      Money `yaml:"usd_per_million_cached_tokens" doc:"price per million prompt tokens that the model server reports as cached, if different" unit:"USD"`
	DefaultTokens  int64 `yaml:"default_tokens" doc:"tokens per choice if the body sets no limit" unit:"tokens"`

	ByResolution      map[string]Money `yaml:"usd_by_resolution" doc:"prices per image or per second by resolution, as in input.resolution or input.size; at most usd_per_image or usd_per_second, which applies to all other resolutions" unit:"USD"`
	DefaultResolution string           `yaml:"default_resolution" doc:"resolution of a run if the body sets none"`
	AtLeastDefault    bool             `yaml:"at_least_default" doc:"reserve at least the default size, length or tokens, even if the body asks for less"`

	// Free is set if the configured price is 0. FreeInput and FreeCached are set if the price of input tokens or of cached input
	// tokens is 0.
	Free, FreeInput, FreeCached bool `yaml:"-"`
}

// NoteKeys sets Free, FreeInput and FreeCached. A configured price of 0 means free, while an absent price means unknown. present reports
// whether the configuration contains a key.
func (r *RunPrice) NoteKeys(present func(key string) bool) {
	for key, price := range r.prices() {
		r.Free = r.Free || present(key) && price == 0
	}
	r.FreeInput = present("usd_per_million_input_tokens") && r.PerInput == 0
	r.FreeCached = present("usd_per_million_cached_tokens") && r.PerCached == 0
}

// prices returns the mutually exclusive unit prices, by name.
func (r *RunPrice) prices() map[string]Money {
	return map[string]Money{
		"usd_per_run": r.PerRun, "usd_per_image": r.PerImage, "usd_per_megapixel": r.PerMegapixel, "usd_per_second": r.PerSecond,
		"usd_per_thousand_characters": r.PerCharacters, "usd_per_execution_hour": r.PerHour, "usd_per_million_tokens": r.PerTokens,
	}
}

// maxCount limits lengths and counts in prices and bodies, so that products of two of them are in range.
const maxCount = 1 << 31

// Validate checks r and joins the errors it finds.
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
	errs.If(rules != 1, "", "must set exactly one of usd_per_run, usd_per_image, usd_per_megapixel, usd_per_second, usd_per_thousand_characters, usd_per_execution_hour and usd_per_million_tokens")
	errs.If((r.PerInput > 0 || r.FreeInput) && r.PerTokens == 0 && !r.Free, "usd_per_million_input_tokens", "requires usd_per_million_tokens")
	errs.If((r.PerCached > 0 || r.FreeCached) && r.PerTokens == 0 && !r.Free, "usd_per_million_cached_tokens",
		"requires usd_per_million_tokens")
	errs.If(r.PerTokens > 0 && r.PerCached > r.prompt(), "usd_per_million_cached_tokens",
		"must not exceed the price of other prompt tokens, because runs are reserved at that price")
	for name, n := range map[string]int64{
		"default_seconds": r.DefaultSeconds, "default_tokens": r.DefaultTokens, "round_seconds": r.RoundSeconds,
		"default_width": r.DefaultWidth, "default_height": r.DefaultHeight,
	} {
		errs.If(n < 0 || n > maxCount, name, "must be between 0 and %d", maxCount)
	}
	errs.If(len(r.ByResolution) > 0 && r.PerImage == 0 && r.PerSecond == 0, "usd_by_resolution", "requires usd_per_image or usd_per_second")
	for name, price := range r.ByResolution {
		errs.If(price > max(r.PerImage, r.PerSecond), "usd_by_resolution."+name, "must not exceed usd_per_image or usd_per_second")
	}
	return errors.Join(errs...)
}

// Known reports whether r has a price above 0. A run without such a price may be free.
func (r RunPrice) Known() bool {
	return max(r.PerRun, r.PerImage, r.PerMegapixel, r.PerSecond, r.PerCharacters, r.PerHour, r.PerTokens) > 0
}

// defaultExecution is the platform's default execution timeout of a job (reference platform-v2, section 12.2).
const defaultExecution = 10 * time.Minute

// MaxCost returns the highest cost of a run with the given body. known is false if the body does not determine the cost, or if body is nil
// because it is not visible. size is the length of the body in bytes, which is an upper bound of the tokens in the prompt.
func (r RunPrice) MaxCost(body map[string]any, size int64) (most Money, known bool) {
	input := object(body, "input")
	switch {
	case r.PerRun > 0:
		return r.PerRun, true
	case body == nil:
		return 0, false
	case r.PerHour > 0:
		ms := defaultExecution.Milliseconds()
		if r.DefaultSeconds > 0 {
			ms = r.DefaultSeconds * 1000
		}
		ms, ok := countOr(member(object(body, "policy"), "executionTimeout"), ms)
		return r.PerHour.share(ms, time.Hour.Milliseconds()), ok
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

// at returns the price for the resolution of the result. A resolution that is not listed has the highest price.
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

// images returns the number of images a run makes: the product of all members that state a number.
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

// pixels returns the size of an image from its width and height or from its size member, whichever is larger.
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

// sides parses a size such as "1024*768". A missing size returns zeros.
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

// length returns a duration in millionths of a second. The body may contain a fraction.
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

// tokens returns the highest number of tokens of all choices together.
func (r RunPrice) tokens(body map[string]any) (n int64, known bool) {
	a := ParseTokenRequest("", body)
	most := a.Tokens
	if most == 0 || r.AtLeastDefault {
		most = max(most, r.DefaultTokens)
	}
	return most * a.Choices, most > 0 && !a.Invalid
}

// member returns a member of an object in a body. It decodes values whose decoding was deferred.
func member(in map[string]any, name string) any { return operation.Decoded(in[name]) }

func object(in map[string]any, name string) map[string]any {
	m, _ := member(in, name).(map[string]any)
	return m
}

// TokenCost returns the cost of prompt tokens and completion tokens.
func (r RunPrice) TokenCost(prompt, completion int64) Money {
	return r.UsageCost(prompt, 0, completion)
}

// UsageCost returns the cost of prompt and completion tokens. cached is the number of prompt tokens that were read from a cache.
func (r RunPrice) UsageCost(prompt, cached, completion int64) Money {
	return min(maxMoney, r.prompt().share(prompt-cached, microPerUSD)+r.cached().share(cached, microPerUSD)+r.PerTokens.share(completion,
		microPerUSD))
}

// prompt returns the price of a million prompt tokens.
func (r RunPrice) prompt() Money {
	if r.FreeInput {
		return 0
	}
	return cmp.Or(r.PerInput, r.PerTokens)
}

// cached returns the price of a million prompt tokens that were read from a cache.
func (r RunPrice) cached() Money {
	if r.FreeCached {
		return 0
	}
	return cmp.Or(r.PerCached, r.prompt())
}

// TimeCost returns the cost of an execution of duration d.
func (r RunPrice) TimeCost(d time.Duration) Money {
	return r.PerHour.share(d.Milliseconds(), time.Hour.Milliseconds())
}

// share returns m*n/per, rounded up and at most maxMoney. n and per must not be negative.
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
