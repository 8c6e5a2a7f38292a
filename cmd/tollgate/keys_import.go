package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

func newKeysImport() *cobra.Command {
	var c *adminClient
	cmd := &cobra.Command{
		Use:   "import ORG FILE",
		Short: "Import existing keys by their SHA-256",
		Long: `Imports a list of keys into a running gateway by their SHA-256: keys of another
gateway, or platform keys of callers. A file that ends in .csv can have the columns

  id,sha256,team,roles,owner,expires,addresses

and lists its columns in the first line. Roles and addresses are separated by spaces.
Any other file is a YAML list, as in key_files of the configuration. A key that cannot
be imported does not affect the other keys.`,
		Example: "  tollgate keys import acme old.csv",
		Args:    named([]string{"ORG", "FILE"}),
		RunE: action(func(cmd *cobra.Command, args []string) error {
			data, err := os.ReadFile(args[1])
			if err != nil {
				return err
			}
			specs, err := readKeys(args[1], data)
			if err != nil {
				return err
			}
			var failed []error
			for _, s := range specs {
				if _, err := c.createKey(cmd.Context(), args[0], s.spec); err != nil {
					failed = append(failed, fmt.Errorf("%s/%s: %w", args[0], s.id, err))
				} else if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s/%s is accepted\n", args[0], s.id); err != nil {
					return err
				}
			}
			return errors.Join(failed...)
		}),
	}
	c = newAdminClient(cmd)
	return cmd
}

// importedKey is a key to import, with its JSON.
type importedKey struct{ id, spec string }

// readKeys parses a list of keys in CSV or YAML.
func readKeys(name string, data []byte) ([]importedKey, error) {
	if strings.EqualFold(filepath.Ext(name), ".csv") {
		return readCSV(name, string(data))
	}
	var keys []settings.Key
	if err := new(strictyaml.Positions).Extend(name, data, "", &keys, math.MaxInt); err != nil {
		return nil, err
	}
	specs := make([]importedKey, len(keys))
	for i := range keys {
		if keys[i].Record().Digests == nil {
			return nil, fmt.Errorf("%s: sha256 is missing for key %q", name, keys[i].ID)
		}
		text, err := json.Marshal(keys[i].Record())
		if err != nil {
			return nil, err
		}
		specs[i] = importedKey{keys[i].ID, string(text)}
	}
	return specs, nil
}

func readCSV(name, text string) ([]importedKey, error) {
	r := csv.NewReader(strings.NewReader(text))
	columns, err := r.Read()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for i, column := range columns {
		if !slices.Contains([]string{"id", "sha256", "team", "roles", "owner", "expires", "addresses"}, column) ||
			slices.Contains(columns[:i], column) {
			return nil, fmt.Errorf("%s: unknown or duplicate column %q", name, column)
		}
	}
	var specs []importedKey
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return specs, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		cell := make(map[string]string, len(columns))
		for i, column := range columns {
			cell[column] = row[i]
		}
		line, _ := r.FieldPos(0)
		if cell["id"] == "" || cell["sha256"] == "" {
			return nil, fmt.Errorf("%s:%d: id and sha256 are required", name, line)
		}
		s := keySpec{
			team: cell["team"], owner: cell["owner"], expires: cell["expires"], digest: cell["sha256"],
			roles: strings.Fields(cell["roles"]), addresses: strings.Fields(cell["addresses"]),
		}
		spec, err := s.spec(cell["id"], time.Now())
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, line, err)
		}
		specs = append(specs, importedKey{cell["id"], spec})
	}
}
