package adminapi

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"
)

// WriteCSV writes rows as CSV. Cells that spreadsheets would interpret as formulas are prefixed with an apostrophe, because callers
// choose names (OWASP, "CSV Injection"). Numbers are not changed.
func WriteCSV(w io.Writer, rows [][]string) error {
	out := csv.NewWriter(w)
	line := make([]string, 0, 64)
	for _, cells := range rows {
		line = line[:0]
		for _, cell := range cells {
			line = append(line, inert(cell))
		}
		if err := out.Write(line); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// inert returns cell in a form that is not a formula.
func inert(cell string) string {
	if cell == "" || !strings.ContainsRune("=+-@\t\r\n", rune(cell[0])) {
		return cell
	}
	if _, err := strconv.ParseFloat(cell, 64); err == nil {
		return cell
	}
	return "'" + cell
}
