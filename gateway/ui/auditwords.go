package ui

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/audit"
)

// actor returns the name of the operator that made a change. On a listener without sign-in, it is the name that the operator entered.
func actor(c *audit.Change) string {
	q, _ := url.ParseQuery(c.Query) // ignore invalid parts
	if by := q.Get("by"); by != "" && c.Who == adminapi.OpenAdmin {
		return by + " (not signed in)"
	}
	return operatorName(c.Who)
}

// operatorName returns the name of an operator as the console shows it.
func operatorName(name string) string {
	if name == adminapi.OpenAdmin {
		return "Not signed in"
	}
	return name
}

// actionWords describes an action of operators, by the path of its endpoint, or returns "" for other actions.
func actionWords(path string) string {
	return map[string]string{
		"keys/create": "Created key", "keys/revoke": "Revoked key", "keys/rotate": "Rotated key", "tokens/revoke": "Revoked token",
		"approvals/grant": "Approved request", "approvals/deny": "Denied request", "limits/reset": "Reset rate limits of",
		"spend/reconcile": "Compared with the platform", "spend/snooze": "Snoozed", "spend/adopt": "Changed the owner of",
		"spend/adopt-team": "Changed the team of", "spend/adjust": "Adjusted the cost of", "spend/holds/release": "Released reservation",
		"explain": "Ran a dry run", "policies/try": "Tested a policy draft", "policies/replay": "Replayed requests with a policy draft",
	}[path]
}

// changePath returns the path of the admin endpoint that made a change. For an operation of a lead, it returns the path of the corresponding endpoint.
func changePath(c *audit.Change) string {
	if _, path, admin := strings.Cut(c.Operation, " /admin/"); admin {
		return path
	}
	return strings.ReplaceAll(strings.TrimPrefix(c.Operation, "self."), ".", "/")
}

// actionCell describes a change in words, with a link to its subject and with its parameters below.
func actionCell(v *visit, c *audit.Change) cell {
	path := changePath(c)
	action := actionWords(path)
	if action == "" {
		verb := map[string]string{"create": "Created", "delete": "Deleted", "update": "Updated", "stop": "Stopped", "start": "Started"}[c.Verb]
		if verb == "" || c.Kind == "" {
			return textCell(c.Operation, parameters(c.Query)...)
		}
		return textCell(verb+" "+words(c.Kind), present(c.Operation)...)
	}
	if c.Summary != "" {
		action = strings.TrimSuffix(action, " request")
	}
	q, _ := url.ParseQuery(c.Query) // ignore invalid parts
	id := cmp.Or(readable(c.Summary), q.Get("id"), c.Resource, specID(q.Get("spec")), q.Get("scope"), q.Get("team"))
	if path == "limits/reset" {
		id = scopeName(id)
	}
	out := textCell(strings.TrimSpace(action+" "+id), parameters(c.Query)...)
	switch kind, _, _ := strings.Cut(path, "/"); {
	case kind == "keys" && id != "":
		out.Path = v.Link("keys/" + url.PathEscape(id))
	case kind == "approvals":
		out.Path = approvalPath(v, c.Resource)
	}
	return out
}

// specID returns the ID in the specification of a new key, or "".
func specID(spec string) string {
	var key struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal([]byte(spec), &key) // a rejected specification may be invalid
	return key.ID
}

// parameters describes the parameters of an action, except for those that identify its subject and author. A JSON object is listed by field.
func parameters(query string) (out []string) {
	q, _ := url.ParseQuery(query) // ignore invalid parts
	fields := make(map[string]any)
	for name := range q {
		var object map[string]any
		if name == "spec" && json.Unmarshal([]byte(q.Get(name)), &object) == nil {
			maps.Copy(fields, object)
		} else if name != "spec" {
			fields[name] = strings.Join(q[name], " ")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if value := strings.Trim(fmt.Sprint(fields[name]), "[]"); value != "" && !slices.Contains([]string{"id", "org", "by", "scope"}, name) {
			out = append(out, words(name)+": "+value)
		}
	}
	return out
}
