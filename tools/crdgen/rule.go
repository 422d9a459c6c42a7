package main

import (
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// celRule returns a rule whose expression is text formatted with arguments, with line breaks and tabs removed.
func celRule(path, message, text string, arguments ...any) apiextensionsv1.ValidationRule {
	return apiextensionsv1.ValidationRule{
		Rule:      strings.Join(strings.Fields(fmt.Sprintf(text, arguments...)), " "),
		Message:   message,
		FieldPath: path,
	}
}

// whenFirstSet returns the rule for a value that cannot change later: it is evaluated when the value is set, and not at
// each write after that.
func whenFirstSet(rule apiextensionsv1.ValidationRule) apiextensionsv1.ValidationRule {
	optional := true
	rule.OptionalOldSelf = &optional
	rule.Rule = "oldSelf.hasValue() || " + rule.Rule
	return rule
}

// sameOptional returns the expression that a field is equal in both objects, or absent from both.
func sameOptional(object, old, field string) string {
	return fmt.Sprintf("has(%[1]s.%[3]s) == has(%[2]s.%[3]s) && (!has(%[1]s.%[3]s) || %[1]s.%[3]s == %[2]s.%[3]s)",
		object, old, field)
}
