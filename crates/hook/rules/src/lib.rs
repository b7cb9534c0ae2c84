// SPDX-License-Identifier: Apache-2.0
//! The rules file: what to look for, where, and what to do about it.

use std::collections::HashSet;
use tare_command::Failure;
use tare_command::reading::{Document, Node};
use tare_hook_segment::{Action, Directions, LONGEST, Scope};

/// A rules file, understood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    pub keywords: Vec<Keyword>,
}

/// One keyword with what its rule says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyword {
    pub text: String,
    /// Letters of ASCII match in both cases.
    pub ignore_case: bool,
    pub scope: Scope,
    pub direction: Directions,
    pub action: Action,
}

const SCOPES: [(&str, Scope); 3] =
    [("http", Scope::Http), ("tcp", Scope::Tcp), ("all", Scope::All)];
const DIRECTIONS: [(&str, Directions); 3] =
    [("in", Directions::In), ("out", Directions::Out), ("both", Directions::Both)];
const ACTIONS: [(&str, Action); 2] = [("trace", Action::Trace), ("block", Action::Block)];

impl Keyword {
    /// What no two keywords of a file have in common.
    fn identity(&self) -> (String, bool, u8, u8, u8) {
        let Self { text, ignore_case, scope, direction, action } = self;
        (text.clone(), *ignore_case, *scope as u8, *direction as u8, *action as u8)
    }
}

impl Rules {
    /// Reads the rules in `text`; an error names `file`, the line, the key, what was found
    /// and what was expected.
    pub fn parse(file: &str, text: &str) -> Result<Self, Failure> {
        let document = Document::parse(file, text)?;
        let root = document.root();
        root.only(&["rule"])?;
        let mut keywords: Vec<Keyword> = Vec::new();
        let mut known = HashSet::new();
        for rule in root.required("rule", "tables [[rule]]")?.list("tables [[rule]]")? {
            for (keyword, node) in read_rule(&rule)? {
                if !known.insert(keyword.identity()) {
                    return Err(node.refuse("every keyword only once per file"));
                }
                keywords.push(keyword);
            }
        }
        Ok(Self { keywords })
    }
}

fn read_rule<'d>(rule: &Node<'d>) -> Result<Vec<(Keyword, Node<'d>)>, Failure> {
    rule.only(&["keywords", "ignore_case", "scope", "direction", "action"])?;
    let ignore_case = rule.optional("ignore_case", Node::boolean, false)?;
    let scope = rule.optional("scope", |node| node.choice(&SCOPES), Scope::All)?;
    let direction = rule.optional("direction", |node| node.choice(&DIRECTIONS), Directions::In)?;
    let action = rule.optional("action", |node| node.choice(&ACTIONS), Action::Trace)?;
    let words = rule.required("keywords", "a list of strings")?;
    let read_keyword = |node: Node<'d>| {
        let (text, ignore_case) = read_word(&node, ignore_case)?;
        Ok((Keyword { text, ignore_case, scope, direction, action }, node))
    };
    words.list("a list of strings")?.into_iter().map(read_keyword).collect()
}

/// `"text"`, or `{ text = "text", ignore_case = true }` where it differs from its rule.
fn read_word(node: &Node<'_>, ignore_case: bool) -> Result<(String, bool), Failure> {
    if !node.is_table() {
        return Ok((read_text(node)?, ignore_case));
    }
    node.only(&["text", "ignore_case"])?;
    let text = node.required("text", "a string")?;
    Ok((read_text(&text)?, node.optional("ignore_case", Node::boolean, ignore_case)?))
}

fn read_text(node: &Node<'_>) -> Result<String, Failure> {
    let text = node.string()?;
    match text.len() {
        1..=LONGEST => Ok(text.to_owned()),
        length => {
            Err(node
                .refuse_found(format_args!("{length} bytes"), format_args!("1 to {LONGEST} bytes")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Rules, String> {
        Rules::parse("r.toml", text).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_rule_says_everything_or_only_its_keywords() {
        let rules = parse(
            r#"
            [[rule]]
            keywords = ["one", { text = "Two", ignore_case = false }]
            ignore_case = true
            scope = "http"
            direction = "both"
            action = "block"
            [[rule]]
            keywords = ["three"]
            "#,
        )
        .unwrap();
        let keyword = |text: &str, ignore_case, scope, direction, action| Keyword {
            text: text.to_owned(),
            ignore_case,
            scope,
            direction,
            action,
        };
        assert_eq!(
            rules.keywords,
            [
                keyword("one", true, Scope::Http, Directions::Both, Action::Block),
                keyword("Two", false, Scope::Http, Directions::Both, Action::Block),
                keyword("three", false, Scope::All, Directions::In, Action::Trace),
            ]
        );
    }

    #[test]
    fn errors_name_line_key_found_and_expected() {
        let cases = [
            ("", "r.toml:1: rule: found nothing, expected tables [[rule]]"),
            ("rule = 1", "r.toml:1: rule: found integer 1, expected tables [[rule]]"),
            (
                "[[rule]]\nscope = \"http\"\n",
                "r.toml:1: rule[1].keywords: found nothing, expected a list of strings",
            ),
            (
                "[[rule]]\nkeywords = [\"a\"]\n\nscope = \"htp\"",
                "r.toml:4: rule[1].scope: found \"htp\", expected \"http\", \"tcp\" or \"all\"",
            ),
            (
                "[[rule]]\nkeywords = [\"a\",\n  7]",
                "r.toml:3: rule[1].keywords[2]: found integer 7, expected a string",
            ),
            (
                "[[rule]]\nkeywords = [\"\"]",
                "r.toml:2: rule[1].keywords[1]: found 0 bytes, expected 1 to 1024 bytes",
            ),
            (
                "[[rule]]\nkeywords = [\"a\"]\nignore_case = \"yes\"",
                "r.toml:3: rule[1].ignore_case: found \"yes\", expected true or false",
            ),
            (
                "[[rule]]\nkeyword = [\"a\"]",
                "r.toml:2: rule[1].keyword: found an unknown key, expected keywords, \
                 ignore_case, scope, direction or action",
            ),
            (
                "[[rule]]\nkeywords = [\"a\"]\n[[rule]]\nkeywords = [\"a\"]",
                "r.toml:4: rule[2].keywords[1]: found \"a\", expected every keyword only once per \
                 file",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text).unwrap_err(), expected, "{text}");
        }
    }

    #[test]
    fn keywords_that_differ_in_anything_are_not_equal() {
        let rules =
            ["", "ignore_case = true", "scope = 'tcp'", "direction = 'out'", "action = 'block'"]
                .map(|also| format!("[[rule]]\nkeywords = ['a', 'A']\n{also}\n"));
        assert_eq!(parse(&rules.concat()).unwrap().keywords.len(), 10);
        let again = format!("{0}{0}", rules[3]);
        assert!(parse(&again).unwrap_err().starts_with("r.toml:5: rule[2].keywords[1]: "));
    }

    #[test]
    fn what_is_no_toml_is_refused_with_its_line() {
        let error = parse("[[rule]]\nkeywords = [\"a\"").unwrap_err();
        assert!(error.starts_with("r.toml:2: "), "{error}");
    }
}
