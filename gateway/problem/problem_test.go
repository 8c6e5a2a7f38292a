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
