package problem_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/problem"
)

func TestProblemShowsTheDetailAndHidesTheCause(t *testing.T) {
	cause := errors.New("dial tcp 10.0.0.7:443: refused")
	p := problem.UpstreamFailed.New("the platform could not be reached").Because(cause)

	if got := string(p.JSON()); strings.Contains(got, "10.0.0.7") {
		t.Errorf("body = %s, the cause leaked", got)
	}
	if !errors.Is(p, cause) {
		t.Error("errors.Is(p, cause) = false, want the cause kept for the log")
	}
	var body struct {
		Title  string
		Status int
		Detail string
	}
	if err := json.Unmarshal(p.JSON(), &body); err != nil {
		t.Fatal(err)
	}
	if body.Status != http.StatusBadGateway || body.Title != "Bad Gateway" || body.Detail != "the platform could not be reached" {
		t.Errorf("body = %+v, want the three members filled in", body)
	}
}

func TestNewLeavesPercentSignsOfPlainTextAlone(t *testing.T) {
	if got := problem.BadRequest.New("path holds %2e").Detail; got != "path holds %2e" {
		t.Errorf("detail = %q", got)
	}
}

// The page operators read lists each kind with its status.
func TestErrorsPageListsEveryKind(t *testing.T) {
	page, err := os.ReadFile("../../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	for kind := range problem.Kinds() {
		row := "| `" + string(kind) + "` | " + strconv.Itoa(kind.Status()) + " | "
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/errors.md lacks the row\n%s", row)
		}
	}
}

// A client finds the members of the contact under the same names in every form of a refusal.
func TestEveryFormHasTheContact(t *testing.T) {
	t.Parallel()
	p := problem.Forbidden.New("denied")
	p.Contact = problem.Contact{Text: "#gpu", Page: "https://gw.example/1"}
	legacy := map[string]any{"message": "denied"}
	p.Contact.AddTo(legacy)
	for name, got := range map[string]map[string]any{
		"problem": decoded(t, p.JSON()), "run": decoded(t, p.RunJSON()), "chat": decoded(t, p.ChatJSON()), "legacy": legacy,
	} {
		for member, want := range decoded(t, []byte(`{"contact":"#gpu","decision_url":"https://gw.example/1"}`)) {
			if got[member] != want {
				t.Errorf("%s: %s is %v, want %v", name, member, got[member], want)
			}
		}
	}
	if legacy["message"] != "denied" {
		t.Errorf("message is %v, want it unchanged", legacy["message"])
	}
}

func decoded(t *testing.T, text []byte) (object map[string]any) {
	t.Helper()
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	return object
}
