package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/gateway/admin"
)

// output is how a command writes what it was answered.
type output string

func (o *output) flag(cmd *cobra.Command) {
	cmd.Flags().StringVarP((*string)(o), "output", "o", "table", "table, csv or json")
}

func (o *output) check() error {
	if formats := []string{"table", "csv", "json"}; !slices.Contains(formats, string(*o)) {
		return fmt.Errorf("--output %s: expected %s", *o, strings.Join(formats, ", "))
	}
	return nil
}

// write writes the tables, or the value as JSON. Tables of a CSV are parted by an
// empty line.
func (o *output) write(w io.Writer, v any, sheets ...sheet) error {
	if *o == "json" {
		return writeJSON(w, v)
	}
	for i, s := range sheets {
		if i > 0 {
			_, _ = fmt.Fprintln(w)
		}
		write := s.print
		if *o == "csv" {
			write = func(w io.Writer) error { return admin.WriteCSV(w, s) }
		}
		if err := write(w); err != nil {
			return err
		}
	}
	return nil
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// sheet is a table: its first row names the columns.
type sheet [][]string

// add adds a row.
func (s *sheet) add(cells ...any) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		row[i] = fmt.Sprint(cell)
	}
	*s = append(*s, row)
}

// print writes the table for people.
func (s *sheet) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, row := range *s {
		line := strings.Join(row, "\t")
		if i == 0 {
			line = strings.ToUpper(line)
		}
		_, _ = fmt.Fprintln(t, line) // Flush reports
	}
	return t.Flush()
}

// list writes the value as JSON if that is asked for, and the table otherwise.
func list(cmd *cobra.Command, asJSON bool, v any, s sheet) error {
	if asJSON {
		return writeJSON(cmd.OutOrStdout(), v)
	}
	return s.print(cmd.OutOrStdout())
}

// group returns a command that does nothing but have others below it.
func group(use, short string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(below...)
	return cmd
}
