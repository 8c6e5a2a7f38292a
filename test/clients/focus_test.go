package clients

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin"
)

// The export holds against the rules of the specification's own validator, as far as
// it knows them: those of FOCUS 1.0, whose columns 1.2 has, too.
func TestFOCUSValidator(t *testing.T) {
	t.Parallel()
	python := installed(t, "focus-validator-1.0.0/bin/python")
	start := time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC)
	var rows []admin.Cost
	for _, kind := range []string{"pod", "cluster", "endpoint", "network_volume"} {
		rows = append(rows,
			admin.Cost{
				Start: start, End: start.AddDate(0, 0, 1), Team: "research", Key: "ann", Kind: kind, Resource: "a-" + kind, Name: "a, \"b\"",
				GPU: "NVIDIA L4", DataCenter: "EU-RO-1", Decision: "01J", USD: "10.322581",
			},
			admin.Cost{Start: start, End: start.Add(time.Hour), Kind: kind, Resource: "b-" + kind, USD: "0.43"},
		)
	}
	file := filepath.Join(t.TempDir(), "export.csv")
	var out strings.Builder
	if err := admin.WriteFOCUS(&out, "acme", rows); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(out.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(filepath.Dir(python), "focus-validator"), "--data-file", file, "--validate-version", "1.0")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "PYTHONDONTWRITEBYTECODE=1"}
	cmd.WaitDelay = time.Second
	report, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(report), "Validation succeeded.") {
		t.Errorf("the validator (%v):\n%s", err, report)
	}
}
