//! Reads the source of a module that uses cudarc: its types, its functions, and in which order these call what.
//!
//! By names, since a parser knows no types: `Type::function` and free functions are told apart, a method is any of its name.

use std::collections::BTreeSet;
use std::path::Path;

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, FnArg, ImplItem, Item, ReturnType, Signature, Type, UseTree, Visibility};

use super::{read, rust_files};

/// What cudarc calls the question whether the driver's library is there.
const QUESTION: &str = "is_culib_present";

/// A step of a function, as far as it may lead to the driver.
#[derive(Debug)]
pub enum Step {
    /// Asks whether the driver is there, on this line.
    Ask(usize),
    /// Names something of cudarc.
    Driver,
    /// Calls a function of this type, or a free one.
    Function(Option<String>, String),
    Method(String),
}

#[derive(Debug)]
pub struct Function {
    /// `FILE:LINE`
    pub place: String,
    pub owner: Option<String>,
    pub name: String,
    pub reach: Reach,
    pub method: bool,
    /// The types that it is given, that of `self` among them.
    pub takes: Types,
    pub steps: Vec<Step>,
}

/// Who can call a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    Module,
    Crate,
    /// Whoever can name its type, since it is a trait's.
    Type,
}

/// What is named in a type.
#[derive(Debug, Default)]
pub struct Types {
    pub names: BTreeSet<String>,
    /// Something of cudarc.
    pub foreign: bool,
}

/// A structure, and what is in those of its fields that only the module can fill.
#[derive(Debug)]
pub struct Structure {
    pub name: String,
    /// Whether it can be named outside of the module.
    pub public: bool,
    pub hides: Types,
}

#[derive(Debug, Default)]
pub struct Module {
    pub functions: Vec<Function>,
    pub structures: Vec<Structure>,
    /// Places at which something of cudarc's can be reached from outside of the module, and what.
    pub leaks: Vec<(String, String)>,
    /// Imports that cannot be followed, or must not be.
    pub faults: Vec<String>,
}

/// What is imported from cudarc into a file, by its name there.
#[derive(Default)]
struct Imports {
    names: BTreeSet<String>,
    /// Lines, and what is wrong there.
    faults: Vec<(usize, &'static str)>,
}

impl Imports {
    fn add(&mut self, tree: &UseTree, path: &str) {
        let mut leaf = |name: &Ident, path: &str| {
            let parts: Vec<_> = path.split("::").collect();
            // PTX text is a plain value; what compiles opens a library.
            if parts.first() == Some(&"cudarc") {
                if parts.contains(&"nvrtc") && parts.last() != Some(&"Ptx") {
                    self.faults.push((
                        name.span().start().line,
                        "NVRTC is used, but only the driver is asked for; the kernels are compiled ahead of time",
                    ));
                }
                self.names.insert(name.to_string());
            }
        };
        match tree {
            UseTree::Path(next) => self.add(&next.tree, &format!("{path}{}::", next.ident)),
            UseTree::Name(name) if name.ident == "self" => {
                let module = path.trim_end_matches("::");
                let last = module.rsplit("::").next().unwrap();
                leaf(&Ident::new(last, name.ident.span()), module);
            }
            UseTree::Name(name) => leaf(&name.ident, &format!("{path}{}", name.ident)),
            UseTree::Rename(name) => leaf(&name.rename, &format!("{path}{}", name.ident)),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.add(tree, path)),
            UseTree::Glob(glob) => {
                if path.starts_with("cudarc") {
                    let line = glob.star_token.spans[0].start().line;
                    self.faults
                        .push((line, "all of a module of cudarc is imported: name what is used"));
                }
            }
        }
    }

    fn has(&self, first: &Ident) -> bool {
        first == "cudarc" || self.names.contains(&first.to_string())
    }
}

impl Visit<'_> for Imports {
    fn visit_item_use(&mut self, item: &syn::ItemUse) {
        self.add(&item.tree, "");
    }
}

struct Named<'a> {
    imports: &'a Imports,
    types: Types,
}

impl Visit<'_> for Named<'_> {
    fn visit_path(&mut self, path: &syn::Path) {
        self.types.foreign |= self.imports.has(&path.segments[0].ident);
        self.types
            .names
            .extend(path.segments.iter().map(|segment| segment.ident.to_string()));
        visit::visit_path(self, path);
    }
}

struct Steps<'a> {
    imports: &'a Imports,
    owner: Option<&'a str>,
    steps: Vec<Step>,
}

impl Steps<'_> {
    /// What stands in a macro is not parsed: each name before a parenthesis is taken for any function or method.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut last = None;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if self.imports.has(&ident) {
                        self.steps.push(Step::Driver);
                    }
                    last = Some(ident);
                }
                TokenTree::Group(group) => {
                    if let Some(name) = last
                        .take()
                        .filter(|_| group.delimiter() == Delimiter::Parenthesis)
                    {
                        self.steps.push(Step::Function(None, name.to_string()));
                        self.steps.push(Step::Method(name.to_string()));
                    }
                    self.tokens(group.stream());
                }
                _ => last = None,
            }
        }
    }
}

impl Visit<'_> for Steps<'_> {
    fn visit_expr_path(&mut self, expression: &syn::ExprPath) {
        let names: Vec<_> = expression.path.segments.iter().map(|part| &part.ident).collect();
        let [.., name] = names[..] else { return };
        let line = name.span().start().line;
        self.steps.push(if name == QUESTION {
            Step::Ask(line)
        } else if self.imports.has(names[0]) {
            Step::Driver
        } else {
            let owner = names.iter().rev().nth(1).map(|owner| owner.to_string());
            // `module::function` is a free function.
            let owner = owner.filter(|owner| owner.starts_with(|first: char| first.is_ascii_uppercase()));
            let owner = owner.map(|owner| match self.owner {
                Some(this) if owner == "Self" => this.to_owned(),
                _ => owner,
            });
            Step::Function(owner, name.to_string())
        });
    }

    fn visit_expr_method_call(&mut self, call: &syn::ExprMethodCall) {
        self.visit_expr(&call.receiver);
        self.steps.push(Step::Method(call.method.to_string()));
        call.args.iter().for_each(|argument| self.visit_expr(argument));
    }

    fn visit_macro(&mut self, call: &syn::Macro) {
        self.tokens(call.tokens.clone());
    }
}

/// Whether an attribute says that this is compiled for tests only.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let list = attribute.meta.require_list();
        list.is_ok_and(|list| list.path.is_ident("cfg") && list.tokens.to_string() == "test")
    })
}

/// A file of the module.
struct Reader<'a> {
    place: String,
    /// Whether it is the module's own, in front of which is the rest of the crate.
    root: bool,
    imports: Imports,
    module: &'a mut Module,
}

impl Reader<'_> {
    fn at(&self, name: &Ident) -> String {
        format!("{}:{}", self.place, name.span().start().line)
    }

    fn leaves(&self, visibility: &Visibility) -> bool {
        match visibility {
            Visibility::Public(_) => true,
            Visibility::Restricted(within) => {
                within.path.is_ident("crate") || self.root && within.path.is_ident("super")
            }
            _ => false,
        }
    }

    fn reach(&self, visibility: &Visibility) -> Reach {
        if self.leaves(visibility) {
            Reach::Crate
        } else {
            Reach::Module
        }
    }

    fn named(&self, read: impl FnOnce(&mut Named<'_>)) -> Types {
        let mut named = Named {
            imports: &self.imports,
            types: Types::default(),
        };
        read(&mut named);
        named.types
    }

    fn types(&self, of: &Type) -> Types {
        self.named(|named| named.visit_type(of))
    }

    fn leak(&mut self, leaves: bool, name: &Ident, types: &Types) {
        if leaves && types.foreign {
            self.module.leaks.push((self.at(name), name.to_string()));
        }
    }

    fn function(&mut self, signature: &Signature, body: &syn::Block, owner: Option<&str>, reach: Reach) {
        let mut takes = self.named(|named| {
            for input in &signature.inputs {
                if let FnArg::Typed(input) = input {
                    named.visit_type(&input.ty);
                }
            }
        });
        let method = matches!(signature.inputs.first(), Some(FnArg::Receiver(_)));
        let result = self.named(|named| {
            if let ReturnType::Type(_, result) = &signature.output {
                named.visit_type(result);
            }
        });
        let shown = Types {
            foreign: takes.foreign || result.foreign,
            ..Types::default()
        };
        self.leak(reach == Reach::Crate, &signature.ident, &shown);
        takes.names.extend(owner.filter(|_| method).map(str::to_owned));
        let mut steps = Steps {
            imports: &self.imports,
            owner,
            steps: Vec::new(),
        };
        steps.visit_block(body);
        let steps = steps.steps;
        self.module.functions.push(Function {
            place: self.at(&signature.ident),
            owner: owner.map(str::to_owned),
            name: signature.ident.to_string(),
            reach,
            method,
            takes,
            steps,
        });
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Fn(item) => self.function(&item.sig, &item.block, None, self.reach(&item.vis)),
            Item::Impl(item) => {
                let Type::Path(owner) = &*item.self_ty else { return };
                let owner = owner.path.segments.last().map(|owner| owner.ident.to_string());
                for part in &item.items {
                    match part {
                        ImplItem::Fn(function) => {
                            let reach = match item.trait_ {
                                Some(_) => Reach::Type,
                                None => self.reach(&function.vis),
                            };
                            self.function(&function.sig, &function.block, owner.as_deref(), reach);
                        }
                        ImplItem::Type(alias) => self.leak(true, &alias.ident, &self.types(&alias.ty)),
                        _ => (),
                    }
                }
            }
            Item::Struct(item) => {
                let mut hides = Types::default();
                for field in &item.fields {
                    let types = self.types(&field.ty);
                    if self.leaves(&field.vis) {
                        let name = field.ident.as_ref().unwrap_or(&item.ident);
                        self.leak(true, name, &types);
                    } else {
                        hides.foreign |= types.foreign;
                        hides.names.extend(types.names);
                    }
                }
                self.module.structures.push(Structure {
                    name: item.ident.to_string(),
                    public: self.leaves(&item.vis),
                    hides,
                });
            }
            Item::Type(item) => self.leak(self.leaves(&item.vis), &item.ident, &self.types(&item.ty)),
            Item::Use(item) if self.leaves(&item.vis) => {
                let mut shown = Imports::default();
                shown.add(&item.tree, "");
                let again =
                    |tree: &UseTree| matches!(tree, UseTree::Path(path) if self.imports.has(&path.ident));
                if !shown.names.is_empty() || again(&item.tree) {
                    let place = format!("{}:{}", self.place, item.use_token.span.start().line);
                    self.module.leaks.push((place, "use".to_owned()));
                }
            }
            Item::Mod(item) => {
                let items = item.content.iter().flat_map(|(_, items)| items);
                if !is_test(&item.attrs) {
                    items.for_each(|item| self.item(item));
                }
            }
            _ => (),
        }
    }
}

/// Reads the files of the module in `folder` below `root`.
pub fn module(root: &Path, folder: &str) -> Module {
    let mut module = Module::default();
    for file in rust_files(&root.join(folder)) {
        let file = Path::new(folder).join(file);
        let place = file.to_string_lossy().into_owned();
        let source = syn::parse_file(&read(root, &file)).unwrap_or_else(|error| panic!("{place}: {error}"));
        let mut imports = Imports::default();
        imports.visit_file(&source);
        let faults = imports.faults.iter();
        module
            .faults
            .extend(faults.map(|(line, fault)| format!("{place}:{line}: {fault}")));
        let mut reader = Reader {
            root: file == Path::new(folder).join("mod.rs"),
            place,
            imports,
            module: &mut module,
        };
        source.items.iter().for_each(|item| reader.item(item));
    }
    module
}
