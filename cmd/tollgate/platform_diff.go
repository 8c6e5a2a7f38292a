package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/gateway/schema"
)

func newPlatformDiff() *cobra.Command {
	var from string
	var out *output
	cmd := &cobra.Command{
		Use:   "diff FILE|URL",
		Short: "Compare a newer API description of the platform with the embedded one",
		Long: `Compares an OpenAPI description, in a file or at a URL, with the description embedded
in this build. Lists for each operation what is new, changed or removed, and what the
change requires in the gateway. Exits with 1 if there is a difference. Prose, examples,
servers, path parameters, schemas of response headers and headers of errors are not
compared. If a body has several media types, the schema of only one is compared. No
credential is sent to the URL.`,
		Example: `  tollgate platform diff https://rest.platform.example/v2/openapi.json
  tollgate platform diff newer.json --from older.json -o json`,
		Args: named([]string{"FILE|URL"}),
		RunE: action(func(cmd *cobra.Command, args []string) error {
			return diffPlatform(cmd.Context(), from, args[0], out, cmd.OutOrStdout())
		}),
	}
	cmd.Flags().StringVar(&from, "from", "", "file or URL of the older description (default: the embedded description)")
	out = outputFlag(cmd)
	return cmd
}

// needed is a change of the API, with the work that the change requires in the gateway.
type needed struct {
	Operation string `json:"operation"`
	Method    string `json:"method"`
	Path      string `json:"path"`
	schema.Change
	Needs string `json:"needs"`
}

// diffPlatform writes the differences between two API descriptions. If from is "", the older one is the description embedded in this build.
// It returns errReported if it finds a difference.
func diffPlatform(ctx context.Context, from, to string, out *output, stdout io.Writer) error {
	api, err := schema.Load()
	if err != nil {
		return err
	}
	older := api.Document()
	if from != "" {
		if older, err = readDescription(ctx, from); err != nil {
			return err
		}
	}
	newer, err := readDescription(ctx, to)
	if err != nil {
		return err
	}
	differences, err := schema.Compare(older, newer)
	if err != nil {
		return err
	}
	list, t := []needed{}, sheet{{"operation", "change", "part", "older", "newer", "needs"}}
	for _, d := range differences {
		for _, c := range d.Changes {
			n := needed{d.Operation, d.Method, d.Path, c, operator.RequiredChanges(d, c)}
			list = append(list, n)
			t.add(n.Operation, c.What, strings.TrimSpace(c.In+" "+c.Name), c.Older, c.Newer, n.Needs)
		}
	}
	if len(list) == 0 && out.people() {
		_, err = fmt.Fprintln(stdout, "no differences")
		return err
	}
	if err := out.write(stdout, list, t); err != nil || len(list) == 0 {
		return err
	}
	return errReported
}

// readDescription reads an API description from a file or an HTTP URL.
func readDescription(ctx context.Context, place string) ([]byte, error) {
	if !strings.HasPrefix(place, "http://") && !strings.HasPrefix(place, "https://") {
		return os.ReadFile(place)
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, place, http.NoBody)
	if err != nil {
		return nil, err
	}
	res, err := new(http.Client).Do(req)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(http.MaxBytesReader(nil, res.Body, schema.MaxDescription))
	if err = errors.Join(err, res.Body.Close()); err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("unexpected status %s", res.Status)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", place, err)
	}
	return text, nil
}
