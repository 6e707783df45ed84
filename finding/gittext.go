package finding

import "strings"

// gitReport is the size of the buffer in which git prepares one report: with the newline at the end
// that is how long a printed line gets, "error: " or "warning: " included.
const gitReport = 4096

// GitLine composes a GitText from what git says of a problem: path and text are C strings there, so that
// each ends at its first NUL; control bytes but tab and newline become "?"; and what would not fit
// behind "error: " is cut off (behind "warning: " two bytes less fit: that is left to the printer).
func GitLine(path string, id ID, text string) string {
	line := make([]byte, 0, len(path)+len(id)+min(len(text), gitReport)+4)
	for _, part := range [...]string{path, ": ", string(id), ": ", text} {
		if i := strings.IndexByte(part, 0); i >= 0 {
			part = part[:i]
		}
		if room := gitReport - 1 - len("error: ") - len(line); len(part) > room {
			part = part[:room]
		}
		line = append(line, part...)
	}
	for i, c := range line {
		if (c < ' ' || c == 0x7f) && c != '\t' && c != '\n' {
			line[i] = '?'
		}
	}
	return string(line)
}
