package platform

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// model is one public model: its input, what a generation costs and what comes out.
type model struct {
	slug   string
	output string // the member that carries the result's address
	input  interface{ price(usd float64) float64 }
	usd    float64 // the price of a generation, or of a unit of it
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
	return []model{
		{"wan-2-2-t2v-720-lora", "video_url", &loraInput{}, 0.07},
		{"black-forest-labs-flux-1-schnell", "image_url", &sizedInput{}, 0.0024},
		{"black-forest-labs-flux-1-dev", "image_url", &sizedInput{}, 0.02},
		{"black-forest-labs-flux-1-kontext-dev", "image_url", &editInput{}, 0.025},
		{"p-image-t2i", "image_url", &promptInput{}, 0.005},
		{"minimax-speech-02-hd", "audio_url", &speechInput{}, 0.05 / 1000},
	}
}

type promptInput struct {
	Prompt string `body:"prompt" need:"yes" min:"1"`
}

func (*promptInput) price(usd float64) float64 { return usd }

type editInput struct {
	promptInput

	Image string `body:"image" need:"yes" min:"1"`
}

// speechInput costs by the character.
type speechInput struct{ promptInput }

func (i *speechInput) price(usd float64) float64 {
	return usd * float64(utf8.RuneCountInString(i.Prompt))
}

// sizedInput costs by the megapixel.
type sizedInput struct {
	promptInput

	Width  int `body:"width" min:"64" max:"4096"`
	Height int `body:"height" min:"64" max:"4096"`
}

func (i *sizedInput) price(usd float64) float64 {
	return usd * float64(cmp.Or(i.Width, 1024)) * float64(cmp.Or(i.Height, 1024)) / (1024 * 1024)
}

// loraInput is the input of image-to-video with motion LoRAs, which costs by the second.
type loraInput struct {
	editInput

	High     []lora `body:"high_noise_loras"`
	Low      []lora `body:"low_noise_loras"`
	Duration int    `body:"duration" min:"1" max:"1000"`
	Seed     int64  `body:"seed" min:"-1" max:"9007199254740992"`
	Checks   bool   `body:"enable_safety_checker"`
}

type lora struct {
	Path  string  `body:"path" need:"yes" min:"1"`
	Scale float64 `body:"scale" need:"yes"`
}

func (i *loraInput) check(f fields) {
	if i.Duration = cmp.Or(i.Duration, 5); i.Duration != 5 && i.Duration != 8 {
		f.c.add(f.place("duration"), "must be 5 or 8, but got %d", i.Duration)
	}
}

func (i *loraInput) price(usd float64) float64 { return usd * float64(i.Duration) }

// fault fails for a LoRA under the domain .invalid (RFC 2606), where no file can be. Every
// other path loads: an address of any scheme, or the name of a file in a model repository.
func (i *loraInput) fault() string {
	for _, l := range slices.Concat(i.High, i.Low) {
		if u, err := url.Parse(l.Path); err == nil && strings.HasSuffix(u.Hostname(), ".invalid") {
			return "failed to load LoRA from " + l.Path
		}
	}
	return ""
}

// runPublicLocked takes a generation on: public models have workers of their
// own and start at once.
func (x *exchange) runPublicLocked(m model, j *job) (reply, error) {
	input, _ := j.Input.(map[string]any)
	c := &checker{}
	fields{c: c, at: "$.input", m: input}.fill(m.input)
	if len(c.errs) > 0 {
		return reply{}, badRequest("the input is not valid", c.errs...)
	}
	cost := m.input.price(m.usd)
	if x.acct.funds.Balance < cost {
		return reply{}, refuse(http.StatusPaymentRequired, "insufficient balance")
	}
	x.identifyJobLocked(j)
	w := &worker{ID: m.slug + "-worker"}
	if video, isVideo := m.input.(*loraInput); isVideo && j.Script.Error == "" {
		j.Script.Error = video.fault()
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
