//! What a key may do: a role (how much) and permissions (read, write).
//!
//! A key never hands out more than it has: see [`Grant::within`].

use serde::{Deserialize, Serialize};

/// Ordered: a higher role may do everything that a lower one may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    Analyst = 1,
    DataScientist = 2,
    DataEngineer = 3,
    Admin = 4,
    /// Platform staff: passes every role gate, in every company.
    SuperAdmin = 5,
}

impl Role {
    pub const fn level(self) -> u8 {
        self as u8
    }

    pub const fn from_level(level: i64) -> Option<Role> {
        Some(match level {
            1 => Role::Analyst,
            2 => Role::DataScientist,
            3 => Role::DataEngineer,
            4 => Role::Admin,
            5 => Role::SuperAdmin,
            _ => return None,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Permission {
    Read,
    Write,
}

impl Permission {
    pub const fn name(self) -> &'static str {
        match self {
            Permission::Read => "read",
            Permission::Write => "write",
        }
    }
}

/// A set of permissions. Stored as the comma list `read,write`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Permissions {
    read: bool,
    write: bool,
}

impl Permissions {
    pub const READ: Permissions = Permissions {
        read: true,
        write: false,
    };
    pub const ALL: Permissions = Permissions {
        read: true,
        write: true,
    };

    pub fn of(list: impl IntoIterator<Item = Permission>) -> Permissions {
        let mut set = Permissions::default();
        for permission in list {
            match permission {
                Permission::Read => set.read = true,
                Permission::Write => set.write = true,
            }
        }
        set
    }

    /// Reads the stored form; names that this version does not know grant nothing.
    pub fn parse(text: &str) -> Permissions {
        Permissions {
            read: text.split(',').any(|name| name == "read"),
            write: text.split(',').any(|name| name == "write"),
        }
    }

    pub const fn contains(self, permission: Permission) -> bool {
        match permission {
            Permission::Read => self.read,
            Permission::Write => self.write,
        }
    }

    pub const fn is_empty(self) -> bool {
        !self.read && !self.write
    }

    pub const fn within(self, other: Permissions) -> bool {
        (!self.read || other.read) && (!self.write || other.write)
    }

    pub fn names(self) -> Vec<&'static str> {
        [Permission::Read, Permission::Write]
            .into_iter()
            .filter(|permission| self.contains(*permission))
            .map(Permission::name)
            .collect()
    }

    /// The stored form.
    pub fn to_text(self) -> String {
        self.names().join(",")
    }
}

/// A role together with permissions: what a key is created with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    pub role: Role,
    pub permissions: Permissions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    #[error("`permissions` must name at least one of read, write")]
    NoPermissions,
    #[error("role 1 (Analyst) is read-only: leave out `write` or ask for role 2 or higher")]
    AnalystCannotWrite,
}

impl Grant {
    /// Fills in what a request left out: without a role, read-only keys are role 1 and writing ones role 2;
    /// without permissions, role 1 reads and the others read and write.
    pub fn from_request(
        role: Option<Role>,
        permissions: Option<Permissions>,
    ) -> Result<Grant, GrantError> {
        let permissions = match permissions {
            Some(set) if set.is_empty() => return Err(GrantError::NoPermissions),
            Some(set) => set,
            None if role.is_some_and(|role| role > Role::Analyst) => Permissions::ALL,
            None => Permissions::READ,
        };
        let role = match role {
            Some(role) => role,
            None if permissions.contains(Permission::Write) => Role::DataScientist,
            None => Role::Analyst,
        };
        if role == Role::Analyst && permissions.contains(Permission::Write) {
            return Err(GrantError::AnalystCannotWrite);
        }
        Ok(Grant { role, permissions })
    }

    /// Whether a holder of `other` may hand this out.
    pub fn within(&self, other: &Grant) -> bool {
        self.role <= other.role && self.permissions.within(other.permissions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_without_role_gets_the_lowest_that_can_hold_its_permissions() {
        let read = Grant::from_request(None, Some(Permissions::READ)).unwrap();
        let write = Grant::from_request(None, Some(Permissions::ALL)).unwrap();
        assert_eq!(
            (read.role, write.role),
            (Role::Analyst, Role::DataScientist)
        );
        assert_eq!(
            Grant::from_request(None, None).unwrap().permissions,
            Permissions::READ
        );
    }

    #[test]
    fn a_role_without_permissions_gets_all_it_can_use() {
        let analyst = Grant::from_request(Some(Role::Analyst), None).unwrap();
        let engineer = Grant::from_request(Some(Role::DataEngineer), None).unwrap();
        assert_eq!(
            (analyst.permissions, engineer.permissions),
            (Permissions::READ, Permissions::ALL)
        );
    }

    #[test]
    fn an_analyst_never_writes_and_nobody_gets_nothing() {
        assert_eq!(
            Grant::from_request(Some(Role::Analyst), Some(Permissions::ALL)),
            Err(GrantError::AnalystCannotWrite)
        );
        assert_eq!(
            Grant::from_request(None, Some(Permissions::default())),
            Err(GrantError::NoPermissions)
        );
    }

    #[test]
    fn a_grant_stays_within_the_creators() {
        let creator = Grant {
            role: Role::DataEngineer,
            permissions: Permissions::READ,
        };
        assert!(
            Grant {
                role: Role::Analyst,
                permissions: Permissions::READ
            }
            .within(&creator)
        );
        assert!(
            !Grant {
                role: Role::Admin,
                permissions: Permissions::READ
            }
            .within(&creator)
        );
        assert!(
            !Grant {
                role: Role::DataScientist,
                permissions: Permissions::ALL
            }
            .within(&creator)
        );
    }

    #[test]
    fn permissions_survive_storage() {
        for set in [
            Permissions::READ,
            Permissions::ALL,
            Permissions::of([Permission::Write]),
        ] {
            assert_eq!(Permissions::parse(&set.to_text()), set);
        }
    }
}
