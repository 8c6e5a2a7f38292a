package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// output is the flag -o, which selects the format of a response.
type output struct {
	format  string
	formats []string
}

// outputFlag adds the flag -o to a command. By default, the formats are table, json, yaml and csv.
func outputFlag(cmd *cobra.Command, formats ...string) *output {
	if formats == nil {
		formats = []string{"table", "json", "yaml", "csv"}
	}
	o := &output{formats[0], formats}
	cmd.Flags().VarP(o, "output", "o", strings.Join(formats, ", "))
	complete(cmd, "output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	return o
}

// String implements pflag.Value.
func (o *output) String() string { return o.format }

// Type implements pflag.Value.
func (o *output) Type() string { return "format" }

// Set implements pflag.Value.
func (o *output) Set(format string) error {
	if !slices.Contains(o.formats, format) {
		return errors.New("expected " + strings.Join(o.formats, ", "))
	}
	o.format = format
	return nil
}

// people reports whether the format is meant for people.
func (o *output) people() bool { return o.format == "table" }

// write writes tables, or v as JSON or YAML.
func (o *output) write(w io.Writer, v any, sheets ...sheet) error {
	if o.format == "table" || o.format == "csv" {
		return o.tables(w, sheets)
	}
	var text bytes.Buffer
	if err := writeJSON(&text, v); err != nil {
		return err
	}
	return o.raw(w, text.Bytes())
}

// raw writes JSON text as JSON or YAML, with a newline at its end.
func (o *output) raw(w io.Writer, text []byte) error {
	var err error
	if o.format == "yaml" {
		if text, err = toYAML(text); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(w, "%s\n", bytes.TrimRight(text, "\n"))
	return err
}

// tables writes tables and separates them with empty lines.
func (o *output) tables(w io.Writer, sheets []sheet) error {
	for i, s := range sheets {
		if i > 0 {
			_, _ = fmt.Fprintln(w)
		}
		write := s.print
		if o.format == "csv" {
			write = func(w io.Writer) error { return adminapi.WriteCSV(w, s.texts()) }
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

// sheet is a table of cells. The first row holds the column names.
type sheet [][]any

// add adds a row.
func (s *sheet) add(cells ...any) { *s = append(*s, cells) }

// texts returns the cells formatted for programs.
func (s *sheet) texts() [][]string {
	rows := make([][]string, len(*s))
	for i, row := range *s {
		for _, cell := range row {
			rows[i] = append(rows[i], programText(cell))
		}
	}
	return rows
}

// print writes the table for people.
func (s *sheet) print(w io.Writer) error {
	for _, line := range s.lines(make(map[int]int), inColour(w)) {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// lines returns the rows formatted for people. Columns have at least the given widths, which are updated. Columns of numbers are
// right-aligned.
func (s *sheet) lines(widths map[int]int, colour bool) (lines []string) {
	rows, numeric := s.layout(widths, colour)
	for i, row := range rows {
		for n, text := range row {
			switch { // fmt counts characters
			case numeric[n]:
				text = fmt.Sprintf("%*s", widths[n], text)
			case n < len(row)-1:
				text = fmt.Sprintf("%-*s", widths[n], text)
			}
			if code := colourOf((*s)[i][n], i == 0); colour && code != "" {
				text = "\x1b[" + code + "m" + text + sgrEnd
			}
			row[n] = text
		}
		lines = append(lines, strings.Join(row, "  "))
	}
	return lines
}

// layout returns the cell texts, and which columns contain only numbers. It updates the widths.
func (s *sheet) layout(widths map[int]int, onTerminal bool) (rows [][]string, numeric map[int]bool) {
	numeric = make(map[int]bool)
	for i, row := range *s {
		texts := make([]string, len(row))
		for n, cell := range row {
			text := peopleText(cell, onTerminal)
			if i == 0 {
				text = strings.ToUpper(strings.ReplaceAll(text, "_", " "))
			} else if text != "" {
				was, seen := numeric[n]
				numeric[n] = isNumeric(cell) && (was || !seen)
			}
			texts[n], widths[n] = text, max(widths[n], utf8.RuneCountInString(text))
		}
		rows = append(rows, texts)
	}
	return rows, numeric
}

// group returns a command that only has subcommands.
func group(use, short, example string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Example: example, Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(below...)
	return cmd
}

// noSuchCommand returns the error for an unknown subcommand.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return errors.New(adminapi.UnknownName("command of "+cmd.CommandPath(), args[0], names))
}

// wrongFlag returns the error for an unknown flag.
func wrongFlag(cmd *cobra.Command, err error) error {
	if cmd.HasSubCommands() && len(argumentsOf(cmd.Use)) == 0 {
		if unknown := noSuchCommand(cmd, cmd.Flags().Args()); unknown != nil {
			return unknown
		}
	}
	missing, ok := errors.AsType[*pflag.NotExistError](err)
	if ok && slices.Contains([]string{"c", "config"}, missing.GetSpecifiedName()) && cmd.Flag("admin") != nil {
		return fmt.Errorf("%w: %s does not read a file; set the address of a running gateway with --admin", err, cmd.CommandPath())
	}
	written, ok := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !ok {
		return err
	}
	if near := adminapi.Nearest(written, flagNames(cmd)); near != "" {
		return fmt.Errorf("%w, did you mean --%s?", err, near)
	}
	return err
}
