package platform

import (
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// model is one public model: what its input must have, what a generation costs
// and what comes out.
type model struct {
	slug     string
	required []string
	check    func(fields)              // further rules; nil is none
	price    func(fields) float64      // USD
	output   string                    // the member that carries the result's address
	fails    func(fields) (why string) // nil never fails
}

// publicModel finds a public model by the id it is called under.
func publicModel(slug string) (model, bool) {
	for _, m := range publicModels() {
		if m.slug == slug {
			return m, true
		}
	}
	return model{}, false
}

func publicModels() []model {
	flat := func(usd float64) func(fields) float64 { return func(fields) float64 { return usd } }
	return []model{
		{
			slug: "wan-2-2-t2v-720-lora", required: []string{"prompt", "image"}, output: "video_url",
			check: checkLoraVideo, price: priceLoraVideo, fails: unloadableLora,
		},
		{slug: "black-forest-labs-flux-1-schnell", required: []string{"prompt"}, output: "image_url", check: checkSize, price: perMegapixel(0.0024)},
		{slug: "black-forest-labs-flux-1-dev", required: []string{"prompt"}, output: "image_url", check: checkSize, price: perMegapixel(0.02)},
		{slug: "black-forest-labs-flux-1-kontext-dev", required: []string{"prompt", "image"}, output: "image_url", price: flat(0.025)},
		{slug: "p-image-t2i", required: []string{"prompt"}, output: "image_url", price: flat(0.005)},
		{slug: "minimax-speech-02-hd", required: []string{"prompt"}, output: "audio_url", price: perCharacter(0.05 / 1000)},
	}
}

// checkLoraVideo is the input of image-to-video with motion LoRAs.
func checkLoraVideo(f fields) {
	for _, name := range []string{"high_noise_loras", "low_noise_loras"} {
		list, _ := typed[[]any](f, name, "array")
		for i, v := range list {
			at := f.place(name) + "[" + strconv.Itoa(i) + "]"
			one, ok := f.c.object(at, v, "path", "scale")
			if !ok {
				continue
			}
			one.require("path", "scale")
			one.text("path", 1)
			one.number("scale", -math.MaxFloat64)
		}
	}
	if n, ok := f.integer("duration", 1, 1000); ok && n != 5 && n != 8 {
		f.c.add(f.place("duration"), "must be 5 or 8, but got %d", n)
	}
	f.integer("seed", -1, 1<<53)
	f.flag("enable_safety_checker")
}

func priceLoraVideo(f fields) float64 {
	if n, ok := f.integer("duration", 8, 8); ok && n == 8 {
		return 0.56
	}
	return 0.35
}

// unloadableLora fails for a LoRA under the domain .invalid (RFC 2606), where no
// file can be. Every other path loads: an address of any scheme, or the name of a
// file in a model repository.
func unloadableLora(f fields) string {
	for _, name := range []string{"high_noise_loras", "low_noise_loras"} {
		list, _ := f.m[name].([]any)
		for _, v := range list {
			m, _ := v.(map[string]any)
			path, _ := m["path"].(string)
			if u, err := url.Parse(path); err == nil && strings.HasSuffix(u.Hostname(), ".invalid") {
				return "failed to load LoRA from " + path
			}
		}
	}
	return ""
}

func checkSize(f fields) {
	f.integer("width", 64, 4096)
	f.integer("height", 64, 4096)
}

func perMegapixel(usd float64) func(fields) float64 {
	return func(f fields) float64 {
		side := func(name string) float64 { return float64(f.whole(name, 1, 1<<20, 1024)) }
		return usd * side("width") * side("height") / (1024 * 1024)
	}
}

func perCharacter(usd float64) func(fields) float64 {
	return func(f fields) float64 {
		text, _ := f.text("prompt", 0)
		return usd * float64(len([]rune(text)))
	}
}

// runPublicLocked takes a generation on: public models have workers of their
// own and start at once.
func (x *exchange) runPublicLocked(m model, j *job) (reply, error) {
	input, _ := j.Input.(map[string]any)
	c := &checker{}
	f := fields{c: c, at: "$.input", m: input}
	f.require(m.required...)
	for _, name := range m.required {
		f.text(name, 1)
	}
	if m.check != nil {
		m.check(f)
	}
	if len(c.errs) > 0 {
		return reply{}, badRequest("the input is not valid", c.errs...)
	}
	cost := m.price(f)
	if x.acct.funds.Balance < cost {
		return reply{}, refuse(http.StatusPaymentRequired, "insufficient balance")
	}
	x.identifyJobLocked(j)
	w := &worker{ID: m.slug + "-worker"}
	if m.fails != nil && j.Script.Error == "" {
		j.Script.Error = m.fails(f)
	}
	if j.Script.Error == "" && j.Script.Output == nil {
		j.Script.Output = encoded(map[string]any{
			m.output: "https://results.platform.test/" + j.ID,
			"cost":   json.RawMessage(appendValue(nil, cost)),
		})
	}
	j.ExecTimeout = max(j.ExecTimeout, keepAsync)
	j.startOn(w, x.now, x.s.timing.Job)
	j.Public, j.Cost = true, cost
	for _, old := range slices.Clone(x.acct.publicJobs.order) {
		if old.forgotten(x.now) {
			x.acct.publicJobs.remove(old.ID)
		}
	}
	x.acct.publicJobs.add(j.ID, j)
	return inQueue(j), nil
}

// settlePublicLocked ends a generation whose time has come; failed ones are not
// charged.
func (x *exchange) settlePublicLocked(j *job) {
	if !j.Public || j.Status != jobRunning || j.Ends.After(x.now) {
		return
	}
	if j.Status = j.finish(); j.Status == jobCompleted {
		var spent amounts
		spent[publicEndpointAmount] = j.Cost
		x.acct.spendLocked(meterPublic, "public", spent, j.Ends)
	}
	x.acct.publicJobs.touch(j.ID)
}
