package v1

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/translate"
)

// The shapes of v2's request bodies, written from the documented tables and
// sharing nothing with the code under test. check returns every violation,
// among them the rules across fields that a schema cannot say.

// shape checks one value.
type shape func(at string, v any) []string

func violation(at, format string, args ...any) []string {
	return []string{at + ": " + fmt.Sprintf(format, args...)}
}

func textOf(minLen int) shape {
	return func(at string, v any) []string {
		if s, ok := v.(string); !ok || len(s) < minLen {
			return violation(at, "not a text of %d or more: %v", minLen, v)
		}
		return nil
	}
}

func oneOf(words ...string) shape {
	return func(at string, v any) []string {
		if s, ok := v.(string); !ok || !slices.Contains(words, s) {
			return violation(at, "not one of %v: %v", words, v)
		}
		return nil
	}
}

func like(pattern string) shape {
	re := regexp.MustCompile(pattern)
	return func(at string, v any) []string {
		if s, ok := v.(string); !ok || !re.MatchString(s) {
			return violation(at, "does not match %s: %v", pattern, v)
		}
		return nil
	}
}

func between(low, high int64) shape {
	return func(at string, v any) []string {
		n, ok := v.(json.Number)
		i, err := n.Int64()
		if !ok || err != nil || i < low || i > high {
			return violation(at, "not an integer from %d to %d: %v", low, high, v)
		}
		return nil
	}
}

func boolean(at string, v any) []string {
	if _, ok := v.(bool); !ok {
		return violation(at, "not a boolean: %v", v)
	}
	return nil
}

func textOrNull(at string, v any) []string {
	if v == nil {
		return nil
	}
	return textOf(1)(at, v)
}

func listOf(minItems int, item shape) shape {
	return func(at string, v any) []string {
		list, ok := v.([]any)
		if !ok || len(list) < minItems {
			return violation(at, "not a list of %d or more: %v", minItems, v)
		}
		var faults []string
		for i, x := range list {
			faults = append(faults, item(fmt.Sprintf("%s[%d]", at, i), x)...)
		}
		return faults
	}
}

func stringMap(at string, v any) []string {
	m, ok := v.(map[string]any)
	if !ok {
		return violation(at, "not an object: %v", v)
	}
	var faults []string
	for name, x := range m {
		faults = append(faults, textOf(0)(at+"."+name, x)...)
	}
	return faults
}

// closed is an object of these members only; a name with "!" is required.
func closed(members map[string]shape, rules ...shape) shape {
	return func(at string, v any) []string {
		object, ok := v.(map[string]any)
		if !ok {
			return violation(at, "not an object: %v", v)
		}
		var faults []string
		for name, x := range object {
			member := members[name]
			if member == nil {
				member = members[name+"!"]
			}
			if member == nil {
				faults = append(faults, violation(at, "additional property %q", name)...)
				continue
			}
			faults = append(faults, member(at+"."+name, x)...)
		}
		for name := range members {
			if short, required := strings.CutSuffix(name, "!"); required && object[short] == nil {
				faults = append(faults, violation(at, "%s is missing", short)...)
			}
		}
		for _, rule := range rules {
			faults = append(faults, rule(at, v)...)
		}
		return faults
	}
}

const most = 1 << 53

func joined(base map[string]shape, more map[string]shape) map[string]shape {
	out := map[string]shape{}
	for _, m := range []map[string]shape{base, more} {
		maps.Copy(out, m)
	}
	return out
}

var (
	text0, text1 = textOf(0), textOf(1)
	version      = like(`^\d+\.\d+$`)
	container    = map[string]shape{
		"image": text0, "args": text0, "disk": between(1, most), "env": stringMap,
		"ports": listOf(0, text0), "registry": textOrNull,
	}
	commands = map[string]shape{"cmd": listOf(0, text0), "entrypoint": listOf(0, text0)}
	volumeAt = closed(map[string]shape{"size!": between(10, most), "path!": text0})
	mountSet = closed(map[string]shape{
		"persistent": volumeAt,
		"network":    listOf(1, closed(map[string]shape{"volumeId!": text0, "path!": text0})),
	}, func(at string, v any) []string {
		if translate.At(v, "persistent") != nil && translate.At(v, "network") != nil {
			return violation(at, "both kinds of mount")
		}
		return nil
	})
	cuda = func(at string, v any) []string {
		if len(translate.Items(v, "allowedCudaVersions")) > 0 && translate.Text(v, "minCudaVersion") != "" {
			return violation(at, "both CUDA constraints")
		}
		return nil
	}
	powerOfTwo = func(at string, v any) []string {
		if n := translate.Whole(v, "vcpuCount"); n < 2 || n&(n-1) != 0 {
			return violation(at, "%d vCPUs", n)
		}
		return nil
	}
	cpuBlock    = closed(map[string]shape{"id!": text1, "vcpuCount!": between(2, most)}, powerOfTwo)
	oneFamily   = exactlyOne("gpu", "cpu")
	imageOrTmpl = func(at string, v any) []string {
		if translate.Text(v, "image") == "" && translate.Text(v, "templateId") == "" {
			return violation(at, "neither image nor templateId")
		}
		return nil
	}
	scaler = func(at string, v any) []string {
		member := map[string]string{"QUEUE_DELAY": "queueDelay", "REQUEST_COUNT": "requestCount"}[translate.Text(v, "type")]
		return closed(map[string]shape{"type!": text1, member + "!": between(1, most)})(at, v)
	}
	workerSet = closed(map[string]shape{"min": between(0, most), "max": between(0, most), "idleTimeout": between(1, 3600)}, func(at string, v any) []string {
		if translate.At(v, "min") != nil && translate.At(v, "max") != nil && translate.Whole(v, "min") > translate.Whole(v, "max") {
			return violation(at, "min above max")
		}
		return nil
	})
	serverless = map[string]shape{
		"name": text1, "dataCenterIds": listOf(0, text1), "flashboot": oneOf("OFF", "FLASHBOOT", "PRIORITY_FLASHBOOT"),
		"networkVolumes": listOf(0, text1), "templateId": text1, "timeout": between(0, most), "scaling": scaler, "workers": workerSet,
		"cpu": listOf(1, cpuBlock),
	}
)

func exactlyOne(a, b string) shape {
	return func(at string, v any) []string {
		if (translate.At(v, a) == nil) == (translate.At(v, b) == nil) {
			return violation(at, "not exactly one of %s and %s", a, b)
		}
		return nil
	}
}

// shapes holds the body of every v2 operation that v1 calls with one.
var shapes = map[string]shape{
	"createPod": closed(joined(joined(container, commands), map[string]shape{
		"name!": text1, "cloud": oneOf("SECURE", "COMMUNITY"), "cpu": cpuBlock, "dataCenterIds": listOf(0, text1),
		"globalNetworking": boolean, "mounts": mountSet, "startJupyter": boolean, "startSsh": boolean, "templateId": text1,
		"gpu": closed(map[string]shape{
			"id!": text1, "count": between(1, most), "allowedCudaVersions": listOf(0, version), "minCudaVersion": version,
			"minRamPerGpu": between(1, most), "minVcpuCountPerGpu": between(1, most),
		}, cuda),
	}), oneFamily, imageOrTmpl, func(at string, v any) []string {
		if translate.At(v, "cpu") != nil && translate.At(v, "mounts", "persistent") != nil {
			return violation(at, "a CPU pod with a volume")
		}
		return nil
	}),
	"updatePod": closed(joined(joined(container, commands), map[string]shape{
		"name": text1, "globalNetworking": boolean, "locked": boolean, "mounts": mountSet, "templateId": text1,
	})),
	"podAction": closed(map[string]shape{"action!": oneOf("start", "stop", "restart")}),
	"createEndpoint": closed(joined(joined(container, serverless), map[string]shape{
		"name!": text1, "type!": oneOf("QUEUE"), "scaling!": scaler,
		"gpu": closed(map[string]shape{
			"pools!": listOf(1, text1), "excludedTypes": listOf(0, text1), "count": between(1, most),
			"allowedCudaVersions": listOf(0, version), "minCudaVersion": version,
		}, cuda),
	}), oneFamily, imageOrTmpl, func(at string, v any) []string {
		if translate.Text(v, "scaling", "type") == "REQUEST_COUNT" && translate.At(v, "workers", "idleTimeout") != nil {
			return violation(at, "an idle timeout with REQUEST_COUNT")
		}
		return nil
	}),
	"updateEndpoint": closed(joined(joined(container, serverless), map[string]shape{
		"gpu": closed(map[string]shape{
			"pools": listOf(1, text1), "excludedTypes": listOf(0, text1), "count": between(1, most),
			"allowedCudaVersions": listOf(0, version), "minCudaVersion": like(`^$|^\d+\.\d+$`),
		}, cuda, func(at string, v any) []string {
			if translate.At(v, "excludedTypes") != nil && translate.At(v, "pools") == nil {
				return violation(at, "excludedTypes without pools")
			}
			return nil
		}),
	})),
	"createTemplate": closed(joined(container, map[string]shape{
		"name!": text1, "image!": text0, "category": oneOf("NVIDIA", "AMD", "CPU"), "mounts": closed(map[string]shape{"persistent": volumeAt}),
		"public": boolean, "serverless": boolean, "startSsh": boolean, "startJupyter": boolean, "allowedCudaVersions": listOf(0, version),
	})),
	"updateTemplate": closed(joined(container, map[string]shape{
		"name": text1, "mounts": closed(map[string]shape{"persistent": volumeAt}), "public": boolean,
	})),
	"createNetworkVolume": closed(map[string]shape{"name!": text1, "size!": between(10, 4096), "dataCenter!": text1}),
	"updateNetworkVolume": closed(map[string]shape{"name": text1, "size": between(10, 4096)}, func(at string, v any) []string {
		if len(translate.Members(v)) == 0 {
			return violation(at, "empty")
		}
		return nil
	}),
	"createRegistry": closed(map[string]shape{"name!": text1, "username!": text1, "password!": text1}),
}

// check holds a call's body against its documented shape.
func check(call sent) []string {
	s := shapes[call.op]
	switch {
	case s == nil && call.body == nil:
		return nil
	case s == nil:
		return violation(call.op, "a body where none belongs: %v", call.body)
	}
	return s(call.op, call.body)
}
