package contract

import (
	"strings"
	"testing"
)

// secrets checks what other parts of the gateway rely on: names are unique and immutable, values are never returned, and a change of
// both members sets the value first.
func secrets(t *testing.T, c *client) {
	t.Helper()
	made := c.want(t, 201, "createSecret", `{"name":"contract/one","value":"never shown","description":"d"}`)
	id := made.text("id")
	c.tidy(t, "deleteSecret", id)
	got := c.want(t, 200, "getSecret", "", id)
	listed := c.want(t, 200, "listSecrets", "")
	if strings.Contains(string(made.body)+string(got.body)+string(listed.body), "never shown") {
		t.Errorf("the value is shown: %s %s %s", made.body, got.body, listed.body)
	}
	if got.text("name") != "contract/one" || got.text("description") != "d" || got.text("createdAt") == "" || !strings.Contains(string(listed.body), id) {
		t.Errorf("read back: %s, list: %s", got.body, listed.body)
	}
	c.want(t, 409, "createSecret", `{"name":"contract/one","value":"other"}`)
	for _, body := range []string{
		`{}`, `{"name":"a"}`, `{"value":"a"}`, `{"name":"a","value":""}`, `{"name":"1a","value":"v"}`, `{"name":"a b","value":"v"}`,
		`{"name":"` + strings.Repeat("a", 192) + `","value":"v"}`, `{"name":"a","value":"v","id":"x"}`,
	} {
		c.want(t, 422, "createSecret", body)
	}
	for _, body := range []string{`{}`, `{"name":"other"}`, `{"value":""}`, `{"value":null}`} {
		c.want(t, 422, "updateSecret", body, id)
	}
	if got := c.want(t, 200, "updateSecret", `{"value":"another","description":""}`, id).at("description"); got != nil {
		t.Errorf("the description after an empty one: %v, want null", got)
	}
	c.want(t, 204, "deleteSecret", "", id)
	for _, op := range []string{"getSecret", "deleteSecret"} {
		c.want(t, 404, op, "", id)
	}
	c.want(t, 404, "updateSecret", `{"value":"v"}`, id)
}
