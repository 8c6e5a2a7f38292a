package catalog

// RunPrices maps the names of public models and the IDs of endpoints to declared prices.
type RunPrices map[string]RunPrice

// For returns the price of runs of the public model or endpoint with the given name or ID. It returns the declared price or, if none is
// declared, the platform's published price. If there is neither, the returned price is unknown.
func (r RunPrices) For(id string) RunPrice {
	if declared, ok := r[id]; ok {
		return declared
	}
	return models[id]
}

// IsPublicModel reports whether the platform publishes a public model with that name.
func IsPublicModel(id string) bool {
	_, ok := models[id]
	return ok
}

// usd converts exact dollar constants into amounts.
const usd = microPerUSD

// models holds the prices and defaults that the platform publishes for its public models (reference platform-v2, section 12.9). For a price
// range, models holds the upper end; if the range is open, the price is unknown.
var models = map[string]RunPrice{
	"black-forest-labs-flux-1-dev":         image(0.02 * usd),
	"black-forest-labs-flux-1-kontext-dev": {PerImage: 0.025 * usd},
	"black-forest-labs-flux-1-schnell":     image(0.0024 * usd),
	"chatterbox-turbo":                     {PerCharacters: 1 * usd}, // 0.001 USD per second of speech; no character takes longer
	"cogito-671b-v2-1-fp8-dynamic":         language(0.5*usd, 0.5*usd, 512),
	"google-nano-banana-2-edit": {
		PerImage: 0.175 * usd, ByResolution: map[string]Money{"1k": 0.0875 * usd, "2k": 0.13 * usd}, DefaultResolution: "1k",
	},
	"gpt-oss-120b":                  language(10*usd, 10*usd, 512),
	"granite-4-0-h-small":           language(10*usd, 10*usd, 512),
	"infinitetalk":                  {PerRun: 0.5 * usd},
	"kling-v2-1-i2v-pro":            fives(0.45 * usd),
	"kling-v2-6-std-motion-control": {}, // from 0.21 to over 0.63 USD per video
	"kling-video-o1-r2v":            video(0.112 * usd),
	"minimax-speech-02-hd":          {PerCharacters: 0.05 * usd},
	"moonshot-kimi":                 language(15*usd, 3*usd, 2048),
	"nano-banana-edit":              {PerImage: 0.038 * usd},
	"nano-banana-pro-edit":          {PerImage: 0.24 * usd},
	"p-image-edit":                  {PerImage: 0.01 * usd},
	"p-image-t2i":                   {PerImage: 0.005 * usd},
	"p-video": {
		PerSecond: 0.04 * usd, ByResolution: map[string]Money{"720p": 0.02 * usd}, DefaultResolution: "720p",
		DefaultSeconds: 5, AtLeastDefault: true,
	},
	"qwen-image-edit":           {PerImage: 0.02 * usd},
	"qwen-image-edit-2511":      {PerImage: 0.02 * usd},
	"qwen-image-edit-2511-lora": {PerImage: 0.025 * usd},
	"qwen-image-t2i":            {PerImage: 0.02 * usd},
	"qwen-image-t2i-lora":       {PerImage: 0.025 * usd},
	"qwen3-32b-awq":             language(10*usd, 10*usd, 512),
	"seedance-v1-5-pro-i2v":     video(0.052 * usd),
	"seedream-v4-edit":          {PerImage: 0.027 * usd},
	"seedream-v4-t2i":           {PerImage: 0.027 * usd},
	"sora-2-i2v":                {PerRun: 1.2 * usd},
	"sora-2-pro-i2v":            {PerRun: 6 * usd},
	"vidu-q3-i2v":               video(0.15 * usd),
	"vidu-q3-t2v":               video(0.15 * usd),
	"wan-2-1-i2v-720":           fives(0.3 * usd),
	"wan-2-2-i2v-720":           {PerRun: 0.9 * usd},
	"wan-2-2-t2v-720-lora":      video(0.07 * usd), // 0.35 USD for 5 s, 0.56 USD for 8 s
	"wan-2-5":                   {PerRun: 1.5 * usd},
	"wan-2-6-i2v": {
		PerSecond: 0.15 * usd, ByResolution: map[string]Money{"1280*720": 0.1 * usd, "720*1280": 0.1 * usd}, DefaultResolution: "1280*720",
		DefaultSeconds: 5, AtLeastDefault: true,
	},
	"wan-2-6-t2i":   {PerImage: 0.03 * usd},
	"wan-2-6-t2v":   {PerRun: 2.25 * usd},
	"z-image-turbo": {PerImage: 0.005 * usd},
}

// image returns a price per megapixel.
func image(megapixel Money) RunPrice {
	return RunPrice{PerMegapixel: megapixel, DefaultWidth: 1024, DefaultHeight: 1024, AtLeastDefault: true}
}

// video returns a price per second.
func video(second Money) RunPrice {
	return RunPrice{PerSecond: second, DefaultSeconds: 5, AtLeastDefault: true}
}

// fives returns a price per started five seconds.
func fives(five Money) RunPrice {
	return RunPrice{PerSecond: five / 5, RoundSeconds: 5, DefaultSeconds: 5, AtLeastDefault: true}
}

// language returns a price per million output tokens and per million input tokens.
func language(output, input Money, defaultTokens int64) RunPrice {
	return RunPrice{PerTokens: output, PerInput: input, DefaultTokens: defaultTokens, AtLeastDefault: true}
}
