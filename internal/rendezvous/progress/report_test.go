package progress

import (
	"fmt"
	"strings"
	"testing"
)

func TestOnlyValidReportsAreTaken(t *testing.T) {
	metrics := func(n int, name, value string) string {
		one := fmt.Sprintf(`{"name":%q,"value":%q}`, name, value)
		return `{"trainerStatus":{"metrics":[` + strings.TrimSuffix(strings.Repeat(one+",", n), ",") + `]}}`
	}
	long := strings.Repeat("ü", 64)
	for what, test := range map[string]struct {
		body string
		want string // part of the error, "" for a valid report
	}{
		"an empty object": {`{}`, ""},
		"an empty status": {`{"trainerStatus":{}}`, ""},
		"all fields": {`{"trainerStatus":{"progressPercentage":0,"estimatedRemainingSeconds":0,"metrics":[],
			"lastUpdatedTime":"2026-11-30T10:00:00Z"}}`, ""},
		"the largest values":       {`{"trainerStatus":{"progressPercentage":100,"estimatedRemainingSeconds":2147483647}}`, ""},
		"an unknown field":         {`{"trainerStatus":{"epoch":3},"kind":"x"}`, ""},
		"the longest metrics":      {metrics(256, long, long), ""},
		"no JSON":                  {`progress`, "reading the report"},
		"a list":                   {`[]`, "reading the report"},
		"a fraction":               {`{"trainerStatus":{"progressPercentage":12.5}}`, "reading the report"},
		"a percentage as text":     {`{"trainerStatus":{"progressPercentage":"12"}}`, "reading the report"},
		"a time of another form":   {`{"trainerStatus":{"lastUpdatedTime":"yesterday"}}`, "reading the report"},
		"a percentage below 0":     {`{"trainerStatus":{"progressPercentage":-1}}`, "progressPercentage: -1, want 0 to 100"},
		"a percentage above 100":   {`{"trainerStatus":{"progressPercentage":101}}`, "101, want 0 to 100"},
		"a percentage beyond ints": {`{"trainerStatus":{"progressPercentage":1e30}}`, "reading the report"},
		"a negative time":          {`{"trainerStatus":{"estimatedRemainingSeconds":-5}}`, "estimatedRemainingSeconds: -5"},
		"an absurd time":           {`{"trainerStatus":{"estimatedRemainingSeconds":2147483648}}`, "2147483648, want"},
		"too many metrics":         {metrics(257, "loss", "1"), "257 metrics, at most 256"},
		"a metric without name":    {metrics(1, "", "1"), "metrics[0].name: 0 characters"},
		"a metric without value":   {metrics(2, "loss", ""), "metrics[0].value: 0 characters"},
		"a long name":              {metrics(1, long+"x", "1"), "metrics[0].name: 65 characters"},
		"a long value":             {metrics(1, "loss", long+"x"), "metrics[0].value: 65 characters"},
	} {
		_, err := Parse([]byte(test.body))
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", what, err, test.want)
		}
	}
}
