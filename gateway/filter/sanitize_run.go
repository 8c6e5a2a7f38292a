package filter

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
)

// jobMembers are the members of run interface errors that are forwarded: members of errors, and members of failed jobs of public models,
// which are returned with status 400 (reference platform-v2, sections 12.3 and 12.7).
var jobMembers = []string{"error", "detail", "id", "status", "delayTime", "executionTime", "workerId", "output"}

// runError rebuilds an error of the run interface from its documented members, with the organisation's credential masked.
func runError(ex *Exchange, cred upstream.Credential) (body []byte, detail string) {
	doc, _ := strictjson.DecodeLenient(ex.Response.Body) // an error page contains nothing useful
	given, _ := doc.(map[string]any)
	out := make(map[string]any)
	for _, name := range jobMembers {
		if v, told := given[name]; told {
			out[name] = v
		}
	}
	detail = runDetail(given)
	if ex.Dialect == route.Chat {
		out = map[string]any{"error": chatError(given, ex.Response.Status, detail)}
	} else if _, told := out["error"]; !told {
		out["error"] = detail
	}
	body, err := strictjson.Append(nil, out)
	if err != nil { // cannot fail: the values were decoded from JSON
		panic(fmt.Sprintf("filter: encode an error: %v", err))
	}
	return cred.Scrub(body), string(cred.Scrub([]byte(detail)))
}

// runDetail returns the message of an error of the run interface or of a model server.
func runDetail(given map[string]any) string {
	inner, _ := given["error"].(map[string]any)
	for _, said := range []any{given["error"], inner["message"], given["detail"], given["message"]} {
		if s, ok := said.(string); ok && s != "" {
			return s
		}
	}
	return "the platform gave no reason"
}

// chatError returns the error of a model server in the form that chat clients expect.
func chatError(given map[string]any, status int, detail string) map[string]any {
	from, nested := given["error"].(map[string]any)
	if !nested {
		from = given // older servers do not nest the error
	}
	kind, _ := from["type"].(string)
	out := map[string]any{"message": detail, "type": cmp.Or(kind, problem.ChatType(status)), "param": nil, "code": nil}
	for _, name := range []string{"param", "code"} {
		switch v := from[name].(type) {
		case string, json.Number:
			out[name] = v
		}
	}
	if out["code"] == nil && status == http.StatusTooManyRequests {
		out["code"] = string(problem.RateLimited)
	}
	return out
}
