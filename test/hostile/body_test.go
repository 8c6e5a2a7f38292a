package hostile

import (
	"fmt"
	"strings"
	"testing"
)

func post(body string, header ...string) string {
	return request("POST", "/v2/pods", k1, body, header...)
}

// TestBodies: a body that a policy read in another way than the platform will, never gets
// there.
func TestBodies(t *testing.T) {
	t.Parallel()
	s := open(t)
	with := func(member string) string { return strings.TrimSuffix(allowed, "}") + "," + member + "}" }
	count := func(n string) string { return `{"name":"x","image":"i:1","gpu":{"id":"NVIDIA A40","count":` + n + `}}` }
	table := map[string]refusal{
		"two gpus":                 {post(`{"name":"x","image":"i:1","gpu":{"id":"NVIDIA A40","count":1},"gpu":{"id":"NVIDIA H200","count":1}}`), 400},
		"two gpus to be merged":    {post(`{"name":"x","image":"i:1","gpu":{"id":"NVIDIA H200","count":8},"gpu":{"id":"NVIDIA A40"}}`), 400},
		"other case":               {post(with(`"GPU":{"id":"NVIDIA H200"}`)), 422},
		"other case, nested":       {post(`{"name":"x","image":"i:1","gpu":{"id":"NVIDIA A40","ID":"NVIDIA H200"}}`), 422},
		"long s":                   {post(with(`"image\u017f":"x"`)), 422},
		"escaped name twice":       {post(`{"name":"x","image":"i:1","gpu":{"id":"NVIDIA A40","\u0069d":"NVIDIA H200"}}`), 400},
		"second document":          {post(allowed + `{"gpu":{"id":"NVIDIA H200"}}`), 400},
		"second document, LF":      {post(allowed + "\n" + allowed), 400},
		"NUL behind":               {post(allowed + "\x00"), 400},
		"garbage behind":           {post(allowed + "x"), 400},
		"comment":                  {post("/**/" + allowed), 400},
		"trailing comma":           {post(`{"name":"x",}`), 400},
		"single quotes":            {post(`{'name':'x'}`), 400},
		"NaN":                      {post(count("NaN")), 400},
		"byte order mark":          {post("\xef\xbb\xbf" + allowed), 400},
		"UTF-16":                   {post("\xff\xfe{\x00}\x00"), 400},
		"invalid UTF-8 in a value": {post("{\"name\":\"x\",\"image\":\"i:1\",\"gpu\":{\"id\":\"NVIDIA A40\xff\"}}"), 400},
		"invalid UTF-8 in a name":  {post("{\"na\xffme\":\"x\"}"), 400},
		"overlong UTF-8":           {post("{\"name\":\"\xc0\xaf\"}"), 400},
		"lone surrogate":           {post(`{"name":"x","image":"i:1","gpu":{"id":"NVIDIA A40\ud800"}}`), 400},
		"NUL escape":               {post(`{"name":"x","image":"i:1","gpu":{"id":"NVIDIA A40\u0000H200"}}`), 400},
		"null":                     {post("null"), 422},
		"array of bodies":          {post("[" + allowed + "]"), 422},
		"empty object":             {post("{}"), 422},
		"text":                     {post(`"x"`), 422},

		"count as text":        {post(count(`"1"`)), 422},
		"count as false":       {post(count("false")), 422},
		"count as null":        {post(count("null")), 422},
		"count as list":        {post(count("[1]")), 422},
		"count with exponent":  {post(count("85e-1")), 422},
		"count with fraction":  {post(count("1.5")), 422},
		"count nine as 9.0":    {post(count("9.0")), 403},
		"count minus zero":     {post(count("-0")), 422},
		"count beyond uint64":  {post(count("18446744073709551617")), 422},
		"count with plus":      {post(count("+1")), 400},
		"count hexadecimal":    {post(count("0x1")), 400},
		"count with zero":      {post(count("01")), 400},
		"number bomb":          {post(count("1e1000000")), 400},
		"200,000 digits... 90": {post(count(strings.Repeat("9", 90_000))), 400},
		"count 9":              {post(count("9")), 403},

		"deep array":        {post(strings.Repeat("[", 50_000)), 400},
		"deep object":       {post(strings.Repeat(`{"a":`, 10_000)), 400},
		"deep and closed":   {post(with(`"env":` + strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40))), 400},
		"long string":       {post(`{"name":"` + strings.Repeat("a", 70<<10) + `"}`), 422},
		"too large":         {post(`{"name":"` + strings.Repeat("a", 102400) + `"}`), 413},
		"too large, nobody": {request("POST", "/v2/pods", "", strings.Repeat(" ", 102401)), 413},

		"no type":                 {post(allowed, "Content-Type:"), 415},
		"plain text":              {post(allowed, "Content-Type: text/plain"), 415},
		"form":                    {post(allowed, "Content-Type: application/x-www-form-urlencoded"), 415},
		"multipart":               {post(allowed, "Content-Type: multipart/form-data; boundary=x"), 415},
		"utf-7":                   {post(allowed, "Content-Type: application/json;charset=utf-7"), 415},
		"utf-16":                  {post(allowed, "Content-Type: application/json; charset=utf-16"), 415},
		"two types":               {post(allowed, "Content-Type: application/json", "Content-Type: application/json"), 415},
		"list of types":           {post(allowed, "Content-Type: application/json, text/plain"), 415},
		"patch type":              {post(allowed, "Content-Type: application/merge-patch+json"), 415},
		"gzip":                    {post(allowed, "Content-Type: application/json", "Content-Encoding: gzip"), 415},
		"identity":                {post(allowed, "Content-Type: application/json", "Content-Encoding: identity"), 415},
		"empty coding":            {post(allowed, "Content-Type: application/json", "Content-Encoding:"), 415},
		"coding in small letters": {post(allowed, "Content-Type: application/json", "content-encoding: br"), 415},
		"coding on a route of v1": {request("POST", "/v1/pods", k1, `{"imageName":"i"}`, "Content-Type: application/json", "Content-Encoding: gzip"), 415},

		"GPU in other case":     {post(`{"name":"x","image":"i:1","gpu":{"id":"nvidia a40"}}`), 422},
		"GPU with a space":      {post(`{"name":"x","image":"i:1","gpu":{"id":" NVIDIA A40"}}`), 422},
		"GPU with NBSP":         {post(`{"name":"x","image":"i:1","gpu":{"id":"NVIDIA\u00a0A40"}}`), 422},
		"GPU not on the list":   {post(`{"name":"x","image":"i:1","gpu":{"id":"NVIDIA H200"}}`), 403},
		"GPU escaped":           {post(`{"name":"x","image":"i:1","gpu":{"id":"NVIDIA H\u003200"}}`), 403},
		"address to call back":  {post(with(`"webhook":"http://169.254.169.254/"`)), 422},
		"address, nested":       {post(with(`"gpu2":{"api_base":"http://x/"}`)), 422},
		"policy input in it":    {post(with(`"caller":{"roles":["admin"]}`)), 422},
		"GET with a body":       {request("GET", "/v2/pods", k1, `{"a":1}`), 400},
		"GET with a blank body": {request("GET", "/v2/pods", k1, " "), 400},
		"DELETE with a body":    {request("DELETE", "/v2/pods/pod1", k1, `{"action":"start"}`), 400},
		"PATCH without a body":  {request("PATCH", "/v2/pods/pod1", k1, ""), 400},
		"PATCH of null":         {request("PATCH", "/v2/pods/pod1", k1, "null"), 422},
		"PATCH of a list":       {request("PATCH", "/v2/pods/pod1", k1, "[]"), 422},
		"action unknown":        {request("POST", "/v2/pods/pod1/action", k1, `{"action":"START"}`), 422},
		"action twice":          {request("POST", "/v2/pods/pod1/action", k1, `{"action":"stop","action":"start"}`), 400},
		"action as a list":      {request("POST", "/v2/pods/pod1/action", k1, `{"action":["start"]}`), 422},

		"v1 duplicate":         {request("POST", "/v1/pods", k1, `{"imageName":"i","gpuTypeIds":["NVIDIA A40"],"gpuTypeIds":["NVIDIA H200"]}`), 400},
		"graphql duplicate":    {request("POST", "/graphql", k1, `{"query":"{ __typename }","query":"mutation { podTerminate(input: {podId: \"x\"}) }"}`), 400},
		"graphql batch":        {request("POST", "/graphql", k1, `[{"query":"{ __typename }"},{"query":"{ __typename }"}]`), 400},
		"graphql batch of one": {request("POST", "/graphql", k1, `[{"query":"{ __typename }"}]`), 400},
		"graphql second body":  {request("POST", "/graphql", k1, `{"query":"{ __typename }"}{"query":"x"}`), 400},
		"graphql too large":    {request("POST", "/graphql", k1, `{"query":"`+strings.Repeat(" ", 102400)+`"}`), 413},
	}
	for depth := range 6 {
		body := strings.TrimSuffix(allowed, "}") + `,"env":` + strings.Repeat(`{"a":`, depth) + `{"b":"1","b":"2"}` + strings.Repeat("}", depth) + "}"
		table[fmt.Sprintf("duplicate at depth %d", depth)] = refusal{post(body), 400}
		list := `{"query":"{ __typename }","variables":{"a":` + strings.Repeat("[", depth) + `{"b":1,"b":2}` + strings.Repeat("]", depth) + "}}"
		table[fmt.Sprintf("duplicate in variables at depth %d", depth)] = refusal{request("POST", "/graphql", k1, list), 400}
	}
	refusals(t, s, table)
}

// TestBodiesAreRebuilt: the platform gets the judged values, in one spelling, none of the
// stranger's bytes.
func TestBodiesAreRebuilt(t *testing.T) {
	t.Parallel()
	s := open(t)
	for name, body := range map[string]string{
		"plain":          `{"name":"x","image":"i:1","gpu":{"id":"NVIDIA A40","count":1}}`,
		"white space":    "\r\n\t{ \"name\" :\"x\",\n\"image\":\"i:1\",\"gpu\":{\"count\":1,\"id\":\"NVIDIA A40\"}}  \n",
		"escapes":        `{"na\u006de":"\u0078","image":"i\u003a1","gpu":{"\u0069d":"NVIDIA\u0020A40","count":1}}`,
		"order":          `{"gpu":{"count":1,"id":"NVIDIA A40"},"image":"i:1","name":"x"}`,
		"slashes escape": `{"name":"x","image":"i:1","gpu":{"id":"NVIDIA A40","count":1}}`,
	} {
		a := s.ask(t, post(body))
		calls := s.recorder.take()
		if a.Status != 201 || len(calls) != 1 {
			t.Errorf("%s: answer %d %s with %d calls", name, a.Status, a.Body, len(calls))
			continue
		}
		if want := `{"gpu":{"count":1,"id":"NVIDIA A40"},"image":"i:1","name":"x"}`; calls[0].Body != want {
			t.Errorf("%s: the platform got %s, want %s", name, calls[0].Body, want)
		}
	}
}
