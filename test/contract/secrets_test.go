package contract

import (
	"strings"
	"testing"
)

// secrets: names are fixed and unique, values are never shown, and a rotation moves a time.
func secrets(t *testing.T, c *client) {
	t.Helper()
	const name, value = "tollgate_contract", "c4n4ry-of-the-contract"
	create := func(status int, members string) answer {
		t.Helper()
		return c.want(t, status, "createSecret", "{"+members+"}")
	}
	made := create(201, `"name":"`+name+`","value":"`+value+`","description":"d"`)
	id := made.text("id")
	c.tidy(t, "deleteSecret", id)
	create(409, `"name":"`+name+`","value":"other"`)
	for _, members := range []string{
		`"name":"9a","value":"v"`, `"name":"a b","value":"v"`, `"name":"","value":"v"`, `"name":"a"`, `"value":"v"`, `"name":"a","value":""`,
		`"name":"` + strings.Repeat("a", 192) + `","value":"v"`, `"name":"a","value":"v","description":"` + strings.Repeat("d", 65_536) + `"`,
	} {
		create(422, members)
	}
	change := func(status int, body string) answer {
		t.Helper()
		return c.want(t, status, "updateSecret", body, id)
	}
	for _, body := range []string{`{}`, `{"name":"other"}`, `{"value":""}`} {
		change(422, body)
	}
	rotated := change(200, `{"value":"`+value+`-2"}`)
	if rotated.text("createdAt") != made.text("createdAt") || rotated.when(t, "valueLastUpdatedAt").Before(made.when(t, "valueLastUpdatedAt")) {
		t.Errorf("rotated: got %s after %s", rotated.body, made.body)
	}
	cleared := change(200, `{"description":""}`)
	if cleared.text("description") != "" || cleared.text("valueLastUpdatedAt") != rotated.text("valueLastUpdatedAt") {
		t.Errorf("cleared: got %s after %s", cleared.body, rotated.body)
	}
	all, one, none := c.want(t, 200, "listSecrets", ""), c.want(t, 200, "listSecrets", "", "?name="+strings.ToUpper(name)), c.want(t, 200, "listSecrets", "", "?name=tollgate")
	if len(one.list("secrets")) != 1 || one.text("secrets.0.id") != id || len(none.list("secrets")) != 0 || !strings.Contains(string(all.body), id) {
		t.Errorf("lists: got %s, by name %s, by a part of it %s", all.body, one.body, none.body)
	}
	for _, a := range []answer{made, rotated, cleared, all, c.want(t, 200, "getSecret", "", id)} {
		if strings.Contains(string(a.body), value) {
			t.Errorf("an answer shows the value: %s", a.body)
		}
	}
	c.want(t, 204, "deleteSecret", "", id)
	c.want(t, 404, "deleteSecret", "", id)
	c.want(t, 404, "updateSecret", `{"value":"v"}`, id)
}
