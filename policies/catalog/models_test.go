package catalog

import (
	"encoding/json"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A run of each model costs at most what follows by hand from the platform's list.
func TestPublicModels(t *testing.T) {
	prompt := strings.Repeat("é", 500) // a thousand bytes
	examples := map[string]struct{ input, most string }{
		"black-forest-labs-flux-1-dev":         {`{"width":2000,"height":1000}`, "0.04"},   // 2 Mpx × 0.02
		"black-forest-labs-flux-1-kontext-dev": {`{"num_images":3}`, "0.075"},              // 3 × 0.025
		"black-forest-labs-flux-1-schnell":     {`{}`, "0.002517"},                         // 1.048576 Mpx × 0.0024
		"chatterbox-turbo":                     {`{"prompt":"` + prompt + `"}`, "1"},       // 1000 s × 0.001
		"cogito-671b-v2-1-fp8-dynamic":         {`{"max_tokens":1000}`, "0.001"},           // (1000 + 1000) × 0.50 / 10⁶
		"google-nano-banana-2-edit":            {`{"resolution":"2K"}`, "0.13"},            //
		"gpt-oss-120b":                         {`{}`, "0.01512"},                          // (1000 + 512) × 10 / 10⁶
		"granite-4-0-h-small":                  {`{"sampling_params":{"n":2}}`, "0.02024"}, // (1000 + 2 × 512) × 10 / 10⁶
		"infinitetalk":                         {`{}`, "0.5"},                              // of 0.25 to 0.50
		"kling-v2-1-i2v-pro":                   {`{"duration":6}`, "0.9"},                  // 2 × 0.45
		"kling-v2-6-std-motion-control":        {`{}`, ""},                                 // more than 0.63
		"kling-video-o1-r2v":                   {`{"duration":10}`, "1.12"},                // 10 × 0.112
		"minimax-speech-02-hd":                 {`{"prompt":"` + prompt + `"}`, "0.05"},    //
		"moonshot-kimi":                        {`{"messages":[]}`, "0.03372"},             // 1000 × 3 / 10⁶ + 2048 × 15 / 10⁶
		"nano-banana-edit":                     {`{}`, "0.038"},                            //
		"nano-banana-pro-edit":                 {`{"resolution":"1k"}`, "0.24"},            // of 0.14 to 0.24
		"p-image-edit":                         {`{}`, "0.01"},                             //
		"p-image-t2i":                          {`{"n":2,"batch_size":2}`, "0.02"},         // 4 × 0.005
		"p-video":                              {`{"resolution":"1080p"}`, "0.2"},          // 5 × 0.04
		"qwen-image-edit":                      {`{}`, "0.02"},                             //
		"qwen-image-edit-2511":                 {`{"size":"1536*1536"}`, "0.02"},           //
		"qwen-image-edit-2511-lora":            {`{}`, "0.025"},                            //
		"qwen-image-t2i":                       {`{}`, "0.02"},                             //
		"qwen-image-t2i-lora":                  {`{}`, "0.025"},                            //
		"qwen3-32b-awq":                        {`{"max_tokens":100}`, "0.01512"},          // no less than 512 are held
		"seedance-v1-5-pro-i2v":                {`{"resolution":"480p"}`, "0.26"},          // 5 × 0.052
		"seedream-v4-edit":                     {`{}`, "0.027"},                            //
		"seedream-v4-t2i":                      {`{}`, "0.027"},                            //
		"sora-2-i2v":                           {`{"duration":4}`, "1.2"},                  // of 0.40 to 1.20
		"sora-2-pro-i2v":                       {`{"duration":4}`, "6"},                    // of 1.20 to 6.00
		"vidu-q3-i2v":                          {`{"duration":8}`, "1.2"},                  // 8 × 0.15
		"vidu-q3-t2v":                          {`{"duration":5.5}`, "0.825"},              // 5.5 × 0.15
		"wan-2-1-i2v-720":                      {`{}`, "0.3"},                              //
		"wan-2-2-i2v-720":                      {`{"duration":5}`, "0.9"},                  // of 0.30 to 0.90
		"wan-2-2-t2v-720-lora":                 {`{"duration":8}`, "0.56"},                 //
		"wan-2-5":                              {`{}`, "1.5"},                              // of 0.25 to 1.50
		"wan-2-6-i2v":                          {`{"size":"720*1280","duration":10}`, "1"}, // 10 × 0.10
		"wan-2-6-t2i":                          {`{"size":"4096*4096"}`, "0.03"},           //
		"wan-2-6-t2v":                          {`{}`, "2.25"},                             // of 0.50 to 2.25
		"z-image-turbo":                        {`{"num_outputs":null,"size":7}`, "0.005"}, //
	}
	for slug := range models {
		if _, ok := examples[slug]; !ok {
			t.Errorf("%s has no example", slug)
		}
	}
	for slug, tt := range examples {
		most, known := RunPrices(nil).For(slug).MaxCost(run(t, tt.input), 1000)
		if known != (tt.most != "") || known && most.String() != tt.most || !IsPublicModel(slug) {
			t.Errorf("%s %.60s: %s, %t; want %q", slug, tt.input, most, known, tt.most)
		}
	}
	for slug, price := range models {
		if err := price.Validate(); err != nil && price.Known() {
			t.Errorf("%s: %v", slug, err)
		}
	}
	if IsPublicModel("k2n5x8") || RunPrices(nil).For("k2n5x8").Known() {
		t.Error("an endpoint is a public model")
	}
	if got := (RunPrices{"sora-2-i2v": {PerRun: 1}}).For("sora-2-i2v"); got.PerRun != 1 {
		t.Errorf("a declared price gives way to the published one: %+v", got)
	}
}

// No body makes a run cheaper than the platform's own defaults.
func TestNoBodyIsHeldTooCheap(t *testing.T) {
	hostile := []string{
		`{"duration":"1"}`, `{"duration":0}`, `{"duration":-5}`, `{"duration":0.001}`, `{"duration":1e-30}`, `{"duration":1e300}`, `{"duration":[1]}`, `{"duration":true}`, `{"Duration":1}`,
		`{"width":1,"height":1}`, `{"width":"64"}`, `{"width":-1}`, `{"height":0}`, `{"width":1.5}`, `{"width":4294967296,"height":4294967296}`, `{"size":"1*1"}`, `{"size":"-1*-1"}`, `{"size":[]}`,
		`{"num_images":0}`, `{"num_images":-1}`, `{"num_images":0.5}`, `{"num_images":"1"}`, `{"n":2147483648,"num_outputs":2147483648}`,
		`{"max_tokens":1}`, `{"max_tokens":"1"}`, `{"max_tokens":-1}`, `{"max_tokens":1e1}`, `{"sampling_params":{"max_tokens":1}}`, `{"openai_input":{"max_tokens":0}}`, `{"n":0.1}`, `{"best_of":-2}`,
		`{"prompt":1}`, `{"prompt":null}`, `{"prompt":[]}`, `{"prompt":{"length":1}}`, `{"resolution":1}`, `{"resolution":"1p"}`, `{"resolution":[]}`, `"text"`, `[{"duration":1}]`, `null`,
	}
	for slug, price := range models {
		least, known := price.MaxCost(run(t, `{"prompt":""}`), 100)
		if price.Known() && !known {
			t.Errorf("%s: a run that says nothing has no price", slug)
		}
		for _, input := range hostile {
			body := run(t, input)
			for _, name := range []string{"duration", "width", "height", "max_tokens", "resolution", "size"} {
				if m, _ := body["input"].(map[string]any); m[name] != nil {
					body[name] = json.Number("1") // beside the input it means nothing, or less
				}
			}
			if most, ok := price.MaxCost(body, 100); ok && most < least {
				t.Errorf("%s %s: %s, want at least %s, or unknown", slug, input, most, least)
			}
		}
		if most, ok := price.MaxCost(nil, 0); ok && most != price.PerRun {
			t.Errorf("%s: a run whose body is not known costs %s", slug, most)
		}
	}
}

// The most that a run can cost grows with each number in it.
func TestMostIsMonotone(t *testing.T) {
	slugs := make([]string, 0, len(models))
	for slug := range models {
		slugs = append(slugs, slug)
	}
	slices.Sort(slugs)
	names := []string{"duration", "width", "height", "num_images", "num_outputs", "batch_size", "n", "max_tokens", "best_of"}
	rapid.Check(t, func(t *rapid.T) {
		slug := rapid.SampledFrom(slugs).Draw(t, "slug")
		input := map[string]any{"prompt": "x"}
		for _, name := range names {
			if rapid.Bool().Draw(t, "says "+name) {
				input[name] = json.Number(strconv.Itoa(rapid.IntRange(1, 1<<14).Draw(t, name)))
			}
		}
		body, size := map[string]any{"input": input}, rapid.Int64Range(1, 1<<24).Draw(t, "size")
		before, known := models[slug].MaxCost(body, size)
		name := rapid.SampledFrom(names).Draw(t, "grows")
		was, _ := input[name].(json.Number)
		n, _ := strconv.Atoi(was.String())
		input[name] = json.Number(strconv.Itoa(n + rapid.IntRange(1, 1<<14).Draw(t, "by")))
		after, still := models[slug].MaxCost(body, size+1)
		if known && still && n > 0 && after < before {
			t.Errorf("%s: %s, and with a larger %s %s", slug, before, name, after)
		}
	})
}

// reference is the list of public models that the platform publishes, where it is at
// hand.
const reference = "../../../shared/reference/platform-v2.md"

// listed reads the list: of each model, its price and the members it may have.
func listed(t *testing.T) map[string][2]string {
	t.Helper()
	text, err := os.ReadFile(reference)
	if err != nil {
		t.Skip("the platform's reference is not at hand:", err)
	}
	_, section, _ := strings.Cut(string(text), "### 12.9 ")
	section, _, _ = strings.Cut(section, "\n### ")
	rows := make(map[string][2]string)
	for _, row := range regexp.MustCompile(`(?m)^\| ([a-z0-9-]+) \| [a-z -]+ \| ([0-9][^|]*) \| ([^|]*) \| ([^|]*) \|$`).FindAllStringSubmatch(section, -1) {
		rows[row[1]] = [2]string{row[2], row[3] + ", " + row[4]}
	}
	if len(rows) < 39 {
		t.Fatalf("%d models are listed, want 39 or more", len(rows))
	}
	return rows
}

// The prices are those of the platform's list, each read from there.
func TestModelsAreThoseOfTheReference(t *testing.T) {
	rows := listed(t)
	for slug := range models {
		if _, ok := rows[slug]; !ok && slug != "wan-2-2-t2v-720-lora" { // which has a table of its own
			t.Errorf("%s is not on the list", slug)
		}
	}
	amount := regexp.MustCompile(`\d+\.\d+`)
	for slug, row := range rows {
		price, members := row[0], row[1]
		if !IsPublicModel(slug) {
			t.Errorf("%s is missing", slug)
			continue
		}
		if strings.Contains(price, "+") {
			if models[slug].Known() {
				t.Errorf("%s is priced, but %q has no end", slug, price)
			}
			continue
		}
		var amounts []Money
		for _, text := range amount.FindAllString(price, -1) {
			one, err := ParseMoney(text)
			if err != nil {
				t.Fatalf("%s: %v", price, err)
			}
			amounts = append(amounts, one)
		}
		dearest := slices.Max(amounts)
		seconds := Money(defaultOf(members, "duration", 1))
		want := map[bool]Money{true: dearest * seconds, false: dearest}[strings.Contains(price, "/s") || strings.Contains(price, "per second")]
		input := `{"prompt":"x","resolution":"other"}`
		switch {
		case strings.Contains(price, "per megapixel"):
			pixels := defaultOf(members, "width", 0) * defaultOf(members, "height", 0)
			want = Money(math.Ceil(float64(dearest) * float64(pixels) / 1e6))
		case strings.Contains(price, "per second") && !strings.Contains(members, "duration"):
			want, input = dearest*1000, `{"prompt":"`+strings.Repeat("x", 1000)+`"}`
		case strings.Contains(price, "1000 characters"):
			input = `{"prompt":"` + strings.Repeat("x", 1000) + `"}`
		case strings.Contains(price, "tokens"):
			want = dearest*Money(defaultOf(members, "max_tokens", 0)) + amounts[len(amounts)-1]*1000
			want = (want + 999_999) / 1_000_000
		}
		if most, known := models[slug].MaxCost(run(t, input), 1000); !known || most != want {
			t.Errorf("%s: %s, %t; want %s by %q", slug, most, known, want, price)
		}
	}
}

// defaultOf is the default of a member, "duration (5)" for instance.
func defaultOf(members, name string, other int64) int64 {
	m := regexp.MustCompile(name + ` \((\d+)\)`).FindStringSubmatch(members)
	if m == nil {
		return other
	}
	n, _ := strconv.ParseInt(m[1], 10, 64)
	return n
}

// run is the body of a job.
func run(t *testing.T, input string) map[string]any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(`{"input":` + input + `}`))
	d.UseNumber()
	var body map[string]any
	if err := d.Decode(&body); err != nil {
		t.Fatal(err)
	}
	return body
}
